"""Cells in processes of their own: none takes another one down."""

import signal

import pytest

from gdp_grappler.evaluation import bounds
from gdp_grappler.processes import local_team
from helpers import clusters
from helpers import graphs
from helpers import processes
from placer_model.benchmark import cell_worker
from placer_model.benchmark import loading
from placer_model.benchmark import records
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

_SETTINGS = settings_lib.Settings()
_FAILURES = {
    'crash': 'crashed with SIGSEGV', 'exit': 'ended with exit code 3',
    'raise': 'RuntimeError: two lines',
    'refuse': 'It needs the package nowhere.',
    'count': 'It may use 1 of the cores.', 'torn': 'ILLEGAL PLACEMENT by torn',
    'hang': 'no result within 2 s; the cell was ended'
}


@pytest.mark.parametrize('end, words, said', [
    (None, '', 'no result within 3 s; the cell was ended'),
    (None, 'ignored', 'no result within 3 s; the cell was ended'),
    (-signal.SIGKILL, '', 'the process was killed, by the system'),
    (-signal.SIGSEGV, '', 'crashed with SIGSEGV'),
    (-signal.SIGABRT, 'last words', 'crashed with SIGABRT: last words'),
    (70, 'ValueError: x', 'ValueError: x'),
    (70, '', 'ended with exit code 70'),
    (0, 'chatter', 'ended without a result'),
])
def test_why_there_is_no_result(end, words, said):
  found = cell_worker._explain(end, words, 3., has_result=False)
  assert found.startswith(said) and '\n' not in found


def test_a_result_needs_no_words():
  assert cell_worker._explain(0, 'chatter', 3., has_result=True) == ''


@pytest.fixture(name='setup')
def _setup(tmp_path):
  graph = graphs.chain(4, groups=[0, 0, 1, 1])
  cluster, costs = clusters.make_cluster(1), clusters.FixedCosts(1.)
  loading.save(
      tmp_path / 'task',
      loading.Loaded(tasks_lib.Task('net', 'test'), graph, cluster, costs,
                     bound=bounds.LowerBound(4., 2.)))
  return cell_worker.Setup((tmp_path / 'task').read_bytes(), _SETTINGS, 1)


def _cells(names, timeout_s=2.):
  return [cell_worker.Run(name, f'key of {name}', timeout_s) for name in names]


def _team(setup, count):
  return local_team.Here(count).team('helpers.bench_worker:make', setup)


def _record(ended, tmp_path):
  (tmp_path / 'record').write_bytes(ended.result[cell_worker.RECORD])
  return records.read(tmp_path / 'record', ended.job.key)


@pytest.mark.e2e
@pytest.mark.parametrize('count', [1, 3])
def test_failures_stay_where_they_are(setup, tmp_path, count):
  names = ['first', *_FAILURES, 'give_up', 'searching']
  with _team(setup, count) as team:
    found = {ended.job.placer: ended for ended in team.run(_cells(names))}
  assert all(ended.seconds > 0 for ended in found.values())
  for name, message in _FAILURES.items():
    ended = found.pop(name)
    assert message in ended.problem and ended.result is None
  assert not any(ended.problem for ended in found.values())
  assert set(found) == {'first', 'give_up', 'searching'}
  record = _record(found['first'], tmp_path)
  assert (record['status'], record['step_time_s']) == ('ok', 4.)
  assert record['settings'] == _SETTINGS.to_json()
  assert record['processor'] and record['cores'] == 1
  assert cell_worker.PLAN in found['first'].result
  given_up = _record(found['give_up'], tmp_path)
  assert (given_up['status'], given_up['message']) == ('infeasible',
                                                       'Nothing fits.')


@pytest.mark.e2e
def test_a_killed_holder_is_replaced(setup):
  with _team(setup, 1) as team:
    team.results(_cells(['first']))
    [holder] = team._idle
    holder._process.kill()
    # Its threads may live for a moment.
    processes.wait_until(lambda: not holder.alive)
    ended = {
        ended.job.placer: ended.problem
        for ended in team.run(_cells(['first', 'searching']))
    }
  assert ended == {'first': '', 'searching': ''}


@pytest.mark.e2e
def test_nothing_is_left_when_a_team_closes(setup):
  with _team(setup, 1) as team:
    running = team.run(_cells(['first', 'hang'], 60.))
    next(running)
    team._start(1, _cells(['hang'], 60.)[0])
    [holder] = team._busy
    processes.wait_until(lambda: processes.children(holder.pid))
    children = processes.children(holder.pid)
  assert processes.ended([holder.pid, *children])


@pytest.mark.e2e
def test_a_chart_is_drawn(setup):
  with _team(setup, 1) as team:
    [found] = team.results(_cells(['first']))
    [drawn] = team.results([cell_worker.Draw('title', found[cell_worker.PLAN])])
  assert drawn[cell_worker.CHART].startswith(b'\x89PNG')
