"""The output folder as a whole."""

import contextlib
import types

import pytest
import rich.console

from helpers import bench_results
from placer_model import run_folder
from placer_model.benchmark import records
from placer_model.benchmark import report
from placer_model.benchmark import runner
from placer_model.benchmark import settings as settings_lib

_CELL = bench_results.cell
_SEARCH = [[1, .5, 3.], [40, 90., 1.2]]


def _tasks():
  return [
      bench_results.task(human_expert=_CELL(1.5),
                         metis=_CELL(1.25,
                                     curve=_SEARCH), gpu_only=_CELL(None)),
      bench_results.task('lost@cpu', metis=bench_results.failure('gone'),
                         random=bench_results.failure('gone'))
  ]


def _index(tasks=None, has_cells=False, **settings):
  return report.index(settings_lib.Settings(**settings), 'gdp_bench --x',
                      tasks or _tasks(), [], has_cells)


def test_everything_is_written(tmp_path):
  results = report.results(settings_lib.Settings(), 'gdp_bench', _tasks())
  report.write(records.Folder(tmp_path), results)
  assert records.read_results(tmp_path / records.RESULTS) == results
  assert results['schema'] == settings_lib.SCHEMA and results['simulated']
  names = {path.name for path in tmp_path.rglob('*') if path.is_file()}
  assert names == {
      records.RESULTS, 'README.md', 'all.md', 'all.csv', 'means.md',
      'means.csv', 'bars.png', 'curves_evaluations.png', 'curves_seconds.png'
  }
  index = (tmp_path / 'README.md').read_text()
  for name in names - {'README.md'}:
    assert name in index


def _contents(folder):
  return {
      path.relative_to(folder): path.read_bytes() for path in folder.rglob('*')
      if path.is_file()
  }


def test_a_report_of_the_results_is_the_same(tmp_path):
  first, second = tmp_path / 'first', tmp_path / 'second'
  settings = settings_lib.Settings(seed=3, quick=True)
  results = report.results(settings, 'c', _tasks()) | {'versions': {'old': '1'}}
  with run_folder.held(first, '--out_dir'):
    report.write(records.Folder(first), results)
  runner.report_again(first / records.RESULTS, second)
  assert _contents(first) == _contents(second)


def test_results_of_a_version_with_other_placers_are_written(tmp_path):
  cells = {'a_former_placer': _CELL(1.5, curve=_SEARCH), 'metis': _CELL(1.25)}
  results = report.results(settings_lib.Settings(), 'gdp_bench',
                           [bench_results.task(**cells)])
  report.write(records.Folder(tmp_path), results)
  assert '| a_former_placer | removed |' in (tmp_path / 'means.md').read_text()


def test_the_index_says_whether_ops_might_round():
  assert 'if it rounds differently there.' in _index()
  assert 'differently there (may_round).' in _index(may_round=True)


def test_results_of_before_the_rule_might_round():
  fields = settings_lib.Settings().to_json()
  assert fields.pop('may_round') is False
  assert settings_lib.Settings.from_json(fields).may_round


def test_the_index_says_how_it_was_made():
  text = _index()
  assert '    gdp_bench --x\n' in text
  assert '**simulated**, not measured' in text and 'One cell ran' in text
  assert '**Of 5 cells, 2 failed:**\n\n* lost@cpu: gone\n' in text
  assert '**measured**' in _index(reward='measured')
  assert '**small variants**' in _index(quick=True)
  assert '2 cells ran side by side' in _index(jobs=2)
  assert 'searches that do not learn had 2 s' in _index(quick=True)


def test_the_budget_of_the_user_is_of_each_search():
  """It was said to be only of searches that do not learn."""
  assert 'Seed 0; each search had 10 s.' in _index(time_budget_s=10.)


def test_cells_of_an_earlier_run_say_how_many_ran():
  """One cell was said to have run at a time, although kept ones had not."""
  tasks = [bench_results.task(metis=_CELL(settings={'jobs': 2}))]
  assert ' 2 cells ran side by side' in _index(tasks)
  tasks += [bench_results.task(metis=_CELL(settings={'jobs': 1}))]
  assert ' 1 to 2 cells ran side by side' in _index(tasks)


@pytest.mark.parametrize('reward', ['measured', 'emulated'])
def test_what_equal_placements_share_is_said(reward):
  """Steps of the emulator were called measured."""
  assert f'share one {reward} step' in _index(reward=reward)
  assert 'Cells with equal placements' not in _index()


def test_results_have_a_digest_of_the_code():
  """Results of all versions of the code had the same versions."""
  results = report.results(settings_lib.Settings(), 'gdp_bench', _tasks())
  assert results['versions']['code'] == settings_lib.code_digest()[:16]


def test_dispatch_by_the_host_is_no_waiting():
  limits = {
      'critical_path_s': .1, 'busiest_device_s': .2, 'busiest_channel_s': .3,
      'busiest_hosted_s': 1.
  }
  text = _index([bench_results.task(metis=_CELL(limits=limits))])
  assert "* By the host's dispatch for one device: net@2xP100." in text
  assert "or a device with the host's dispatch for it" in text


def test_only_files_that_are_there_are_listed():
  """--report into another folder listed placements that were not there."""
  assert 'plans/' in _index(has_cells=True)
  assert 'with the step of its own run' in _index(has_cells=True)
  assert 'plans/' not in _index()


def test_cells_of_a_ray_cluster_are_said_to_run_side_by_side(
    monkeypatch, tmp_path):
  """README.md said that one cell ran at a time."""
  machines = types.SimpleNamespace(width=3)
  for module, name, value in ((runner.loader_lib, 'Loader', object()),
                              (runner.machines_lib, 'of', machines)):
    monkeypatch.setattr(module, name,
                        lambda *_, value=value: contextlib.nullcontext(value))
  monkeypatch.setattr(runner, '_tasks', lambda *_: ())
  options = runner.BenchOptions('', 'metis', tmp_path, settings_lib.Settings(),
                                'gdp_bench --ray=auto', 'auto')
  runner.run(options, rich.console.Console(quiet=True))
  assert '3 cells ran side by side' in (tmp_path / 'README.md').read_text()


def test_headroom_and_limits():
  text = _index()
  assert '1 of 1 are more than 5 % above it' in text
  assert '| net@2xP100 | metis | 1.25 s | 0.5 s (critical path) | 2.500x |' in (
      text)
  assert 'alone: net@2xP100.' in text


def test_what_one_card_holds_is_said_of_graphs_that_were_tried_on_one():
  said = 'No accelerator holds the graph alone'
  assert said in _index()
  assert said not in _index([bench_results.task(metis=_CELL(1.25))])


def test_measured_steps_have_no_bound():
  task = bench_results.task(
      metis=_CELL(1., lower_bound_s=None, over_bound=None, limits=None))
  text = _index([task | {'lower_bound_s': None}], reward='measured')
  assert 'No lower bound is known' in text
