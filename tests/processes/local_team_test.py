"""Jobs in processes here: in order, and each failure by its name."""

import os
import signal
import tempfile

import pytest

from gdp_grappler import progress
from gdp_grappler.processes import jobs
from gdp_grappler.processes import local_team
from helpers import processes

_HERE = 'helpers.job_functions'


def _team(name, count=1, setup=None):
  return local_team.Here(count).team(f'{_HERE}:{name}', setup)


def _calls(count):
  return [jobs.Call(f'job {number}', (number,)) for number in range(count)]


@pytest.mark.parametrize('count', [1, 3])
def test_results_are_in_the_order_of_the_jobs(count):
  with _team('doubling', count, 'setup') as team:
    for _ in range(2):
      assert team.results(_calls(5)) == [('setup', 2 * i) for i in range(5)]
    assert len(team._idle) <= count


def test_no_jobs_start_nothing():
  before = processes.children(os.getpid())
  with _team('doubling') as team:
    assert not team.results([]) and not list(team.run([]))
    assert processes.children(os.getpid()) == before


def test_failures_stay_where_they_are():
  names = ['well', 'raising', 'dying', 'killed', 'well']
  with _team('misbehaving', 2) as team:
    said = {
        ended.index: (ended.result, ended.problem)
        for ended in team.run([jobs.Call(name) for name in names])
    }
  assert said[0] == said[4] == ('done', '')
  assert said[1] == (None, 'ValueError: two lines')
  assert said[2][1].startswith('the process ended with exit code 3')
  assert 'killed' in said[3][1]


def test_a_job_that_hangs_is_ended(monkeypatch):
  monkeypatch.setattr(jobs, 'GRACE_S', 0.)
  with _team('misbehaving') as team:
    ended, = team.run([jobs.Call('hanging', timeout_s=.1)])
    assert ended.problem == 'no answer within 0.1 s'
    assert team.results([jobs.Call('well')]) == ['done']


def test_a_failure_is_named():
  with _team('misbehaving') as team:
    with pytest.raises(jobs.JobError) as caught:
      team.results([jobs.Call('well'), jobs.Call('raising')])
  assert str(caught.value) == 'raising failed: ValueError: two lines.'


def test_what_is_given_up_does_not_answer_for_others():
  with _team('misbehaving', 2) as team:
    with pytest.raises(jobs.JobError):
      team.results([jobs.Call('hanging'), jobs.Call('raising')])
    assert not team._busy
    assert team.results([jobs.Call('well')] * 3) == ['done'] * 3


def test_a_setup_that_cannot_be_used_fails_every_job():
  with _team('unmade', setup='A thing') as team:
    problems = [ended.problem for ended in team.run(_calls(2))]
  assert problems == ['A thing is missing.'] * 2


def test_all_processes_start_before_the_first_job(monkeypatch):
  """Each started when the one before it had read its job."""
  done = []

  class _Worker(local_team.Worker):

    def __init__(self, *args):
      super().__init__(*args)
      done.append('started')

    def send(self, message):
      super().send(message)
      done.append('sent')

  monkeypatch.setattr(local_team, 'Worker', _Worker)
  with _team('doubling', 2, 'setup') as team:
    team.results(_calls(3))
  # The first message to a process is the setup.
  assert done[:4] == ['sent', 'started'] * 2


def test_a_process_that_died_between_runs_gets_no_job():
  """The next job failed, because it was sent to the dead process."""
  with _team('doubling', 1, 'setup') as team:
    team.results(_calls(1))
    worker, = team._idle
    os.kill(worker.pid, signal.SIGKILL)
    # Its threads may live for a moment.
    processes.wait_until(lambda: not worker.alive)
    assert team.results(_calls(2)) == [('setup', 0), ('setup', 2)]


def test_nothing_is_left_when_a_team_closes(tmp_path, monkeypatch):
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  with _team('doubling') as team:
    team.results(_calls(1))
    worker, = team._idle
    assert list(tmp_path.glob('*/left_behind*'))
  assert processes.ended([worker.pid])
  assert not list(tmp_path.iterdir())


def test_how_far_it_is():
  told = []

  class _Listener:
    doing = make_room = lambda *_: None

    def reached(self, share, detail):
      told.append((share, detail))

  with progress.heard_by(_Listener()), _team('doubling') as team:
    team.results(_calls(2))
    team.results(_calls(2), shown=False)
  assert told == [(.5, '1 of 2 done'), (1., '2 of 2 done')]


def test_what_needs_a_host_for_itself_runs_alone():
  machines = local_team.Here(3)
  assert machines.width == 3
  assert machines.team('f', None, whole_host=True)._count == 1
