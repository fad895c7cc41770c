import json

import pytest

from helpers import benchmarks

pytestmark = pytest.mark.e2e


def test_models_are_timed_both_ways(tmp_path):
  finished = benchmarks.run('fit_workers', '--json', 'models:branches',
                            'models:two_outputs', folder=tmp_path)
  assert finished.code == 0, finished.stderr
  rows = json.loads(finished.stdout)
  assert [row['graph'] for row in rows
         ] == ['models:branches', 'models:two_outputs']
  for row in rows:
    assert list(row) == ['graph', 'one_server_s', 'placed_s', 'predicted_s']
    assert row['one_server_s'] > 0 and row['placed_s'] > 0
    assert row['predicted_s'] is None or row['predicted_s'] > 0


@pytest.mark.parametrize('model, says', [
    ('nothing', 'no module:function'),
    ('models:number', 'not a compiled Keras model'),
    ('models:not_compiled', 'not a compiled Keras model'),
    ('absent:model', 'Cannot import'),
])
def test_models_that_are_none(tmp_path, model, says):
  finished = benchmarks.run('fit_workers', model, folder=tmp_path)
  assert finished.code == 2
  assert not finished.stdout
  line = finished.stderr.strip().splitlines()[-1]
  assert line.startswith('fit_workers: error: ')
  assert says in line
