import json

import pytest

from helpers import benchmarks

pytestmark = pytest.mark.e2e
_KEYS = ['graph', 'before_s', 'after_s', 'variables_moved']
_PAGE = '''# Page

<!-- Gains; made by nobody. -->
old
<!-- End of Gains. -->
more
'''


def _refused(folder, *args):
  finished = benchmarks.run('fit_gain', *args, folder=folder)
  assert finished.code == 2
  assert not finished.stdout
  line = finished.stderr.strip().splitlines()[-1]
  assert line.startswith('fit_gain: error: ')
  return line


def test_a_gain_that_is_there_is_found(tmp_path):
  finished = benchmarks.run('fit_gain', '--json', 'models:branches',
                            'models:wide', folder=tmp_path)
  assert finished.code == 0, finished.stderr
  small, wide = json.loads(finished.stdout)
  assert list(small) == list(wide) == _KEYS
  assert small['graph'] == 'models:branches'
  assert 0 < wide['after_s'] < wide['before_s']
  assert wide['variables_moved'] > 0
  assert 0 < small['after_s'] <= small['before_s']
  assert small['variables_moved'] >= 0


def test_more_is_shown_where_asked_for(tmp_path):
  page = tmp_path / 'page.md'
  page.write_text(_PAGE)
  finished = benchmarks.run('fit_gain', '--json', '--emulated', '--search_s=.1',
                            '--page=page.md', '--cluster=2xK40', 'models:wide',
                            folder=tmp_path)
  assert finished.code == 0, finished.stderr
  row, = json.loads(finished.stdout)
  assert list(row) == _KEYS + [
      'emulated_before_s', 'emulated_after_s', 'best_s', 'best_by'
  ]
  assert row['emulated_before_s'] == pytest.approx(row['before_s'], rel=.2)
  assert row['emulated_after_s'] == pytest.approx(row['after_s'], rel=.2)
  assert 0 < row['best_s'] <= row['before_s']
  text = page.read_text()
  assert text.startswith('# Page\n\n<!-- Gains; made by `python -m ')
  assert text.endswith('<!-- End of Gains. -->\nmore\n')
  assert 'old' not in text
  head, _, cells = (l.split('|') for l in text.splitlines() if '|' in l)
  assert len(head) == len(cells)
  assert cells[1].strip() == 'models:wide'


def test_a_table_names_cluster_and_gain(tmp_path):
  finished = benchmarks.run('fit_gain', 'models:two_outputs', folder=tmp_path)
  assert finished.code == 0, finished.stderr
  assert '2xP100, simulated' in finished.stdout
  assert 'models:two_outputs' in finished.stdout


@pytest.mark.parametrize('graph, says', [
    ('missing.pb', 'does not exist'),
    ('models:number', 'not a Keras model'),
    ('models:absent', 'has no function'),
    ('models:unable', 'no weights'),
    ('absent:model', 'Cannot import'),
])
def test_graphs_that_are_none(tmp_path, graph, says):
  assert says in _refused(tmp_path, graph)


@pytest.mark.parametrize('option', [
    '--cluster=2xNOTHING', '--batch_size=0', '--search_s=-1', '--search_s=nan',
    '--page=absent.md', '--no_such_option'
])
def test_options_that_are_wrong(tmp_path, option):
  _refused(tmp_path, option, 'models:branches')


def test_a_cluster_without_gpus_is_refused(tmp_path):
  assert 'GPU' in _refused(tmp_path, '--cluster=cpu', 'models:branches')
