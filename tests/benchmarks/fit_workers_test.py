import json

import pytest

from gdp_grappler import native
from helpers import benchmarks

pytestmark = pytest.mark.e2e
# Of a function that returns no model there is more in `sources_test`.
_REFUSED = {
    'no module:function': 'nothing',
    'not a compiled Keras model': 'models:not_compiled',
    'Cannot import': 'absent:model',
}


@pytest.fixture(name='finished', scope='module')
def _finished(tmp_path_factory):
  """What each run left behind, first that of a model.

  What servers have loaded before all else, so they may be forks.
  """
  runs = [('--json', 'models:branches'),
          *((model,) for model in _REFUSED.values())]
  return benchmarks.run_all('fit_workers', runs,
                            tmp_path_factory.mktemp('fit_workers'),
                            ['helpers.quick_clocks'],
                            LD_PRELOAD=str(native.LOOPBACK_PATH))


def test_a_model_is_timed_both_ways(finished):
  row, = json.loads(finished[0].stdout)
  assert list(row) == [
      'graph', 'one_server_s', 'one_server_predicted_s', 'placed_s',
      'placed_step_s', 'predicted_s'
  ]
  assert row['graph'] == 'models:branches'
  assert row['one_server_s'] > 0 and row['placed_s'] > 0
  assert (row['predicted_s'] is None) == (row['one_server_predicted_s'] is None)
  # An empty step of a fit is part of what is predicted.
  assert row['predicted_s'] is None or row['predicted_s'] > 1e-3


@pytest.mark.parametrize('says', _REFUSED)
def test_models_that_are_none(finished, says):
  refused = finished[1 + list(_REFUSED).index(says)]
  assert refused.code == 2 and not refused.stdout
  line = refused.stderr.strip().splitlines()[-1]
  assert line.startswith('fit_workers: error: ') and says in line
