"""Cells in processes of their own: none takes another one down."""

import pytest

from gdp_grappler.evaluation import bounds
from helpers import clusters
from helpers import graphs
from helpers import processes
from placer_model.benchmark import cell_worker
from placer_model.benchmark import lanes as lanes_lib
from placer_model.benchmark import loading
from placer_model.benchmark import records
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

pytestmark = pytest.mark.e2e

_SETTINGS = settings_lib.Settings()
_FAILURES = {
    'crash': 'crashed with SIGSEGV', 'exit': 'ended with exit code 3',
    'raise': 'RuntimeError: two lines',
    'refuse': 'It needs the package nowhere.',
    'torn': 'ILLEGAL PLACEMENT by torn',
    'hang': 'no result within 2 s; the cell was ended'
}


@pytest.fixture(name='setup')
def _setup(tmp_path):
  graph = graphs.chain(4, groups=[0, 0, 1, 1])
  cluster, costs = clusters.make_cluster(1), clusters.FixedCosts(1.)
  loading.save(
      tmp_path / 'task',
      loading.Loaded(tasks_lib.Task('net', 'test'), graph, cluster, costs,
                     bound=bounds.LowerBound(4., 2.)))
  return cell_worker.Setup(tmp_path / 'task', _SETTINGS, 1)


def _cells(tmp_path, names, timeout_s=2.):
  return [
      cell_worker.Run(name, f'key of {name}', tmp_path / f'{name}.json',
                      tmp_path / f'{name}.plan', timeout_s) for name in names
  ]


def _lanes(setup, count):
  return lanes_lib.Lanes(setup, count, 'helpers.bench_worker:main')


@pytest.mark.parametrize('count', [1, 3])
def test_failures_stay_where_they_are(setup, tmp_path, count):
  names = ['first', *_FAILURES, 'give_up', 'searching']
  said = {}
  with _lanes(setup, count) as lanes:
    for cell, message, seconds in lanes.run(_cells(tmp_path, names)):
      said[cell.placer] = message
      assert seconds > 0
  for name, message in _FAILURES.items():
    assert message in said.pop(name)
    assert not (tmp_path / f'{name}.json').exists()
  assert said == {'first': '', 'give_up': '', 'searching': ''}
  record = records.read(tmp_path / 'first.json', 'key of first')
  assert (record['status'], record['step_time_s']) == ('ok', 4.)
  assert record['settings'] == _SETTINGS.to_json()
  given_up = records.read(tmp_path / 'give_up.json', 'key of give_up')
  assert (given_up['status'], given_up['message']) == ('infeasible',
                                                       'Nothing fits.')


def test_a_killed_holder_is_replaced(setup, tmp_path):
  with _lanes(setup, 1) as lanes:
    [(_, message, _)] = lanes.run(_cells(tmp_path, ['first']))
    assert message == ''
    [holder] = lanes._idle
    holder.kill()
    holder._process.wait()
    ended = {
        cell.placer: message for cell, message, _ in lanes.run(
            _cells(tmp_path, ['first', 'searching']))
    }
  assert 'was killed' in ended['first'] and ended['searching'] == ''


def test_nothing_is_left_when_lanes_close(setup, tmp_path):
  with _lanes(setup, 1) as lanes:
    running = lanes.run(_cells(tmp_path, ['first', 'hang'], 60.))
    next(running)
    lanes._start(_cells(tmp_path, ['hang'], 60.)[0])
    [holder] = lanes._busy
    processes.wait_until(lambda: processes.children(holder.pid))
    children = processes.children(holder.pid)
  assert processes.ended([holder.pid, *children])


def test_a_chart_is_drawn(setup, tmp_path):
  with _lanes(setup, 1) as lanes:
    list(lanes.run(_cells(tmp_path, ['first'])))
    [(_, message, _)] = lanes.run([
        cell_worker.Draw('title', tmp_path / 'first.plan',
                         tmp_path / 'chart.png')
    ])
  assert message == ''
  assert (tmp_path / 'chart.png').read_bytes().startswith(b'\x89PNG')
