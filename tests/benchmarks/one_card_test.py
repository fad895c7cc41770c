"""`python -m benchmarks.one_card`, on a machine without a card."""

import json
import subprocess
import types

import pytest
from tensorflow.python.eager import context

from helpers import benchmarks

here = benchmarks.module('gpu.here')
one_card = benchmarks.module('one_card')
ways = benchmarks.module('one_card_ways')
models = benchmarks.module('gpu.models')


@pytest.fixture(name='ran')
def _ran(monkeypatch):
  """Pairs that were run, each in a tenth of a second for its number."""
  pairs = []

  def run(command, **unused_options):
    pairs.append(tuple(command[3:5]))
    if command[4] == 'clusters':
      return types.SimpleNamespace(returncode=1, stderr='a\nNo memory.\n')
    found = {
        'step_s': len(pairs) / 10, 'first_s': 3., 'chosen': 'without XLA',
        'peak_bytes': None, 'lines': []
    }
    return types.SimpleNamespace(returncode=0, stdout=f'x\n{json.dumps(found)}')

  monkeypatch.setattr(one_card.subprocess, 'run', run)
  monkeypatch.setattr(one_card.here, 'has_card', lambda: False)
  return pairs


def _rows(capsys, folder, *args):
  assert one_card.main(['--json', '--quiet', f'--out_dir={folder}', *args]) == 0
  return json.loads(capsys.readouterr().out)


def test_ways_that_cut_a_card_need_one(ran, capsys, tmp_path):
  rows = _rows(capsys, tmp_path, '--models=a:cnn',
               '--ways=xla,clusters,split2,split_auto')
  assert ran == [('a:cnn', 'xla'), ('a:cnn', 'clusters')]
  assert [row['error'] for row in rows] == [
      None, 'No memory.', *['needs a GPU, and TensorFlow sees none here'] * 2
  ]
  assert rows[0] == {
      'model': 'cnn', 'way': 'xla', 'step_s': .1, 'first_s': 3.,
      'chosen': 'without XLA', 'peak_bytes': None, 'error': None
  }


def test_what_was_measured_is_not_measured_again(ran, capsys, tmp_path):
  _rows(capsys, tmp_path, '--models=a:cnn', '--ways=xla')
  rows = _rows(capsys, tmp_path, '--models=a:cnn,a:mlp', '--ways=xla,plain')
  assert ran == [('a:cnn', 'xla'), ('a:cnn', 'plain'), ('a:mlp', 'xla'),
                 ('a:mlp', 'plain')]
  assert [row['step_s'] for row in rows] == [.1, .2, .3, .4]
  assert set(here.read(tmp_path / one_card.FILE)) == set(
      one_card.keys(('a:cnn', 'a:mlp'), ('xla', 'plain')))


def test_nothing_begins_when_time_is_out(ran, capsys, tmp_path):
  row, = _rows(capsys, tmp_path, '--models=a:cnn', '--ways=xla',
               '--time_budget_s=0')
  assert row['error'] == 'no time was left' and not ran
  assert here.read(tmp_path / one_card.FILE) == {}


@pytest.mark.parametrize('limit_s, is_kept', [(7, False), (90, True)])
def test_a_process_has_a_limit(monkeypatch, capsys, tmp_path, ran, limit_s,
                               is_kept):
  """A later run with more time did not measure the way again."""
  del ran

  def late(*unused_args, timeout, **unused_options):
    raise subprocess.TimeoutExpired('python', timeout)

  monkeypatch.setattr(one_card.subprocess, 'run', late)
  row, = _rows(capsys, tmp_path, '--models=a:cnn', '--ways=xla',
               f'--limit_s={limit_s}')
  assert row['error'] == f'not done after {limit_s} s'
  assert bool(here.read(tmp_path / one_card.FILE)) == is_kept


def test_an_unknown_way_is_one_line(capsys, ran):
  assert one_card.main(['--quiet', '--ways=fast']) == 2
  assert '--ways has "fast"; valid are xla, plain' in capsys.readouterr().err
  assert not ran


def test_without_the_plugin_nothing_is_measured(monkeypatch, capsys, ran):
  """Ways of placement were measured without placement."""
  monkeypatch.delattr(context.Context, '_gdp_hook')
  assert one_card.main(['--quiet', '--models=a:cnn', '--ways=true']) == 2
  assert 'has not loaded the plugin' in capsys.readouterr().err
  assert not ran


def test_the_table_compares_with_keras():
  rows = [{
      'model': 'cnn', 'way': 'xla', 'step_s': .03, 'first_s': 21.,
      'chosen': 'with XLA', 'peak_bytes': 2e9
  }, {
      'model': 'cnn', 'way': 'split2', 'step_s': .02, 'first_s': 2.,
      'chosen': 'placed: GPU:0 9', 'peak_bytes': None
  }, {'model': 'cnn', 'way': 'true', 'error': 'killed'}]
  assert one_card.cells(rows) == [
      [
          'cnn', "Keras' default, XLA on a GPU", '30.0 ms', '1.00x', '21.0 s',
          '2.00 GB', 'with XLA'
      ],
      [
          'cnn', 'placed on 2 streams', '20.0 ms', '1.50x', '2.0 s', '-',
          'placed: GPU:0 9'
      ],
      ['cnn', 'what True chooses', '-', '-', '-', '-', 'killed'],
  ]


@pytest.mark.parametrize('path', one_card.MODELS)
def test_models_exist(path):
  module, _, name = path.partition(':')
  assert callable(getattr(benchmarks.module(module.split('.', 1)[1]), name))


@pytest.mark.parametrize('make', ['small_recommender', 'small_mixture'])
def test_models_of_ours_take_the_data_that_is_made_for_them(make):
  model = getattr(models, make)()
  inputs, labels = benchmarks.module('timed_fits').batch(model)
  outputs = model(inputs)
  assert outputs.shape[:1] == labels.shape[:1]


@pytest.mark.e2e
def test_a_model_is_measured_on_a_cpu(tmp_path):
  done = benchmarks.run('one_card', '--models=models:branches', '--ways=true',
                        '--json', '--out_dir=out', folder=tmp_path)
  assert done.code == 0, done.stderr
  row, = json.loads(done.stdout)
  assert row['error'] is None and row['step_s'] > 0
  assert row['chosen'] == 'without XLA'
