"""Tests of `gdp calibrate` and of --calibration."""

import pathlib

import pytest

from gdp_grappler.bin import gdp
from gdp_grappler.cluster import calibration
from gdp_grappler.cluster import cluster_file
from gdp_grappler.evaluation.calibrating import calibrator
from helpers import calibrations

_GRAPH = str(pathlib.Path(__file__).parents[2] / 'testdata/dense_train_step.pb')


@pytest.fixture(name='asked')
def _asked(monkeypatch):
  """The options that the command came with; a card is measured at once."""
  asked = []

  def calibrate(options, tell):
    asked.append(options)
    tell('it was told')
    return calibrations.make()

  monkeypatch.setattr(calibrator, 'calibrate', calibrate)
  return asked


def test_writes_what_was_measured(asked, tmp_path, capsys):
  path = tmp_path / 'c.json'
  assert gdp.run([
      'calibrate', f'--output={path}', '--device=GPU:1', '--time_budget_s=5',
      '--refresh', f'--cache_dir={tmp_path}'
  ]) == 0
  assert calibration.load(path) == calibrations.make()
  options, = asked
  assert (options.number, options.budget_s, options.refresh) == (1, 5., True)
  out, err = capsys.readouterr()
  assert 'launching_op_s' in out and f'--calibration={path}' in out
  assert 'gdp: it was told' in err


def test_the_default_budget_is_that_of_the_calibrator(asked, capsys):
  assert gdp.run(['calibrate', '--quiet']) == 0
  assert asked[0].budget_s == calibrator.DEFAULT_BUDGET_S < 30
  assert 'launching_op_s' not in capsys.readouterr().out


@pytest.mark.parametrize('arguments,message', [
    (['--output=/absent/c.json'], 'its folder does not exist'),
    (['--device=CPU'], 'give a card, such as GPU:0'),
    (['--time_budget_s=0'], 'more than 0'),
])
def test_bad_input_is_one_line(asked, arguments, message, capsys):
  try:
    code = gdp.run(['calibrate', *arguments])
  except SystemExit as error:
    code = error.code
  assert code == 2 and message in capsys.readouterr().err
  assert not asked


def test_without_a_card_it_ends_with_2(capsys):
  assert gdp.run(['calibrate', '--quiet']) == 2
  error = capsys.readouterr().err
  assert 'sees no GPU here' in error and '--calibration=FILE' in error


def test_plans_and_clusters_by_a_calibration_from_elsewhere(tmp_path, capsys):
  made = tmp_path / 'c.json'
  calibrations.make(kernels=(('MatMul', 1e6, 1e5, 1.),)).save(made)
  assert gdp.run([
      'cluster', '1xH100', f'--calibration={made}',
      f'--output={tmp_path}/cluster.json', '--quiet'
  ]) == 0
  cluster = cluster_file.read(f'{tmp_path}/cluster.json')
  assert cluster.calibrated
  steps = []
  for options in ([], [f'--calibration={made}']):
    assert gdp.run([
        'place', _GRAPH, '--cluster=1xH100', '--placer=round_robin',
        f'--output={tmp_path}/plan.json', '--quiet', *options
    ]) == 0
    steps.append(capsys.readouterr().out)
  # A product of a second shows.
  assert ' ms ' in steps[0] and steps[0] != steps[1]


@pytest.mark.parametrize('cluster,message', [
    ('2xP100', 'has no such GPU'),
    ('', 'Give --cluster, too'),
])
def test_a_calibration_needs_a_cluster_with_the_card(tmp_path, cluster, message,
                                                     capsys):
  made = tmp_path / 'c.json'
  calibrations.make().save(made)
  where = [f'--cluster={cluster}'] if cluster else []
  code = gdp.run([
      'simulate', _GRAPH, f'--plan={tmp_path}/p.json', *where,
      f'--calibration={made}'
  ])
  assert code == 2 and message in capsys.readouterr().err
