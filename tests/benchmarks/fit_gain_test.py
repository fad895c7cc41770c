import json
import pathlib

import pytest

from gdp_grappler import environment
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import step as step_lib
from helpers import benchmarks
from helpers import clusters
from helpers import graphs

pytestmark = pytest.mark.e2e
_STEP = pathlib.Path(__file__).parents[1] / 'testdata' / 'dense_train_step.pb'
_KEYS = ['graph', 'before_s', 'after_s', 'variables_moved']
_PAGE = '''# Page

<!-- Gains; made by nobody. -->
old
<!-- End of Gains. -->
more
'''
_RUNS = {
    'json': ('--json', 'models:branches'),
    'everything': ('--json', '--emulated', '--search_s=.1', '--page=page.md',
                   '--cluster=2xK40', 'models:wide'),
    'table': ('models:two_outputs',),
}
# Of a function that returns no model there is more in `sources_test`.
_REFUSED = {
    'does not exist': ('missing.pb',),
    'not a Keras model': ('models:number',),
    'GPU': ('--cluster=cpu', str(_STEP)),
    '2xNOTHING': ('--cluster=2xNOTHING', str(_STEP)),
    '--batch_size': ('--batch_size=0', str(_STEP)),
    '-1': ('--search_s=-1', str(_STEP)),
    'nan': ('--search_s=nan', str(_STEP)),
    'absent.md': ('--page=absent.md', str(_STEP)),
    '--no_such_option': ('--no_such_option', str(_STEP)),
}


@pytest.fixture(name='folder', scope='module')
def _folder(tmp_path_factory):
  result = tmp_path_factory.mktemp('fit_gain')
  (result / 'page.md').write_text(_PAGE)
  return result


@pytest.fixture(name='finished', scope='module')
def _finished(folder):
  """What each run left behind, by name."""
  runs = _RUNS | _REFUSED
  return dict(
      zip(runs, benchmarks.run_all('fit_gain', list(runs.values()), folder)))


def test_rows_name_graph_and_seconds(finished):
  row, = json.loads(finished['json'].stdout)
  assert list(row) == _KEYS
  assert row['graph'] == 'models:branches'
  assert 0 < row['after_s'] <= row['before_s']


def test_a_gain_that_is_there_is_found_and_more_is_shown(finished, folder):
  row, = json.loads(finished['everything'].stdout)
  assert 0 < row['after_s'] < row['before_s']
  assert row['variables_moved'] > 0
  assert list(row) == _KEYS + [
      'emulated_before_s', 'emulated_after_s', 'best_s', 'best_by'
  ]
  assert row['emulated_before_s'] == pytest.approx(row['before_s'], rel=.2)
  assert row['emulated_after_s'] == pytest.approx(row['after_s'], rel=.2)
  assert 0 < row['best_s'] <= row['before_s']
  text = (folder / 'page.md').read_text()
  assert text.startswith('# Page\n\n<!-- Gains; made by `python -m ')
  assert text.endswith('<!-- End of Gains. -->\nmore\n')
  assert 'old' not in text
  head, _, cells = (l.split('|') for l in text.splitlines() if '|' in l)
  assert len(head) == len(cells)
  assert cells[1].strip() == 'models:wide'


def test_a_table_names_cluster_and_gain(finished):
  assert finished['table'].code == 0, finished['table'].stderr
  assert '2xP100, simulated' in finished['table'].stdout
  assert 'models:two_outputs' in finished['table'].stdout


@pytest.mark.parametrize('says', _REFUSED)
def test_what_is_refused_gets_one_line(finished, says):
  refused = finished[says]
  assert refused.code == 2 and not refused.stdout
  line = refused.stderr.strip().splitlines()[-1]
  assert line.startswith('fit_gain: error: ') and says in line


@pytest.mark.parametrize('memory_bytes, by', [(100, '-'), (1 << 30, 'm_etf')])
def test_the_best_of_the_other_placers_fits(monkeypatch, memory_bytes, by):
  """A plan that exceeds a memory could be the best."""
  # The program sets them, too.
  for name, value in environment.without_plugin().items():
    monkeypatch.setenv(name, value)
  fit_gain = benchmarks.module('fit_gain')
  stock = placer_table.table()
  monkeypatch.setattr(placer_table, 'table', lambda: {'m_etf': stock['m_etf']})
  step = step_lib.Step(graphs.chain(4, 1000, flops=1.),
                       clusters.make_cluster(2, memory_bytes=memory_bytes))
  found = fit_gain._best(step, fit_gain.settings_lib.Settings(), 1.)
  assert found['best_by'] == by
  assert (found['best_s'] < float('inf')) == (by != '-')
