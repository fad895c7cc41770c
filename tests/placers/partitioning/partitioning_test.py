import ctypes
import dataclasses
import math
import os
import sys

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.placers import group_graph
from gdp_grappler.placers.partitioning import partition_process
from gdp_grappler.placers.partitioning import partitioning
from gdp_grappler.processes import calls
from helpers import clusters
from helpers import graphs
from helpers import problems


def _target(problem, workers=(1, 2), **options):
  workers = np.array(workers)
  return partitioning.make_target(
      problem, workers,
      group_graph.build(problem.graph, problem.busy_seconds, workers),
      **options)


def test_accelerators_are_gpus_or_else_cpus_the_fastest_first():
  mixed = presets.preset('1xK40+2xP100')
  problem = problems.make(graphs.chain(9, flops=1e9), mixed)
  assert partitioning.accelerators(problem.cluster,
                                   problem.busy_seconds).tolist() == [2, 3, 1]
  alone = problems.make(graphs.chain(3), clusters.make_cluster(0), 1.)
  assert partitioning.accelerators(alone.cluster,
                                   alone.busy_seconds).tolist() == [0]


def test_shares_follow_speed():
  cluster = clusters.make_cluster(2)
  seconds = np.array([[9., 1., 2.]]).repeat(6, axis=0)
  target = _target(problems.make(graphs.chain(6), cluster, seconds))
  np.testing.assert_allclose(target.shares, [2 / 3, 1 / 3])


def test_devices_of_one_unit_share_its_speed():
  cluster = clusters.make_cluster(3, compute=['c', 'a', 'a', 'b'])
  target = _target(problems.make(graphs.chain(6), cluster, 1.), (1, 2, 3))
  np.testing.assert_allclose(target.shares, [.25, .25, .5])


def test_what_no_worker_may_hold_is_fixed_elsewhere_and_weighs_nothing():
  types = np.ones((5, 2), bool)
  types[2, 1] = False
  graph = graphs.chain(5, allowed_types=types, pins=['', 'GPU:1', '', '', ''])
  target = _target(problems.make(graph, clusters.make_cluster(2), 1.))
  assert target.devices.tolist() == [1, 2, 0] and target.num_workers == 2
  assert target.fixed.tolist() == [-1, 1, 2, -1, -1]
  assert target.graph.weights.tolist() == [1, 1, 0, 1, 1]
  assert target.shares[2] < 1e-3 and target.shares.sum() == pytest.approx(1)


def test_memory_can_take_the_place_of_seconds():
  cluster = clusters.make_cluster(2)
  cluster = dataclasses.replace(
      cluster, devices=(*cluster.devices[:2],
                        dataclasses.replace(cluster.devices[2],
                                            memory_bytes=3 << 40)))
  graph = graphs.make_graph(num_ops=2, param_bytes=[10, 30])
  target = _target(problems.make(graph, cluster, 1.), memory=1.)
  np.testing.assert_allclose(target.graph.weights, [.5, 1.5])
  np.testing.assert_allclose(target.shares, [.25, .75])


def test_an_illegal_placement_gets_the_cheapest_allowed_device():
  graph = graphs.make_graph([(0, 1, 1000), (1, 2, 10)])
  problem = problems.make(graph, clusters.make_cluster(2, latency_s=0.), 1.)
  problem.allowed[1] = [True, True, False]
  built = group_graph.build(problem.graph, problem.busy_seconds,
                            np.array([1, 2]))
  # Op 1 gets 1000 bytes from op 0 and sends 10 bytes to op 2. So it goes to the
  # device of op 0.
  assert partitioning.cheapest_legal(problem, built,
                                     np.array([1, 2, 0])).tolist() == [1, 1, 0]
  assert partitioning.cheapest_legal(problem, built,
                                     np.array([0, 2, 1])).tolist() == [0, 0, 1]
  fine = np.array([2, 1, 2])
  assert partitioning.cheapest_legal(problem, built, fine) is fine


def _proposals(target, *devices):
  return [partitioning.Proposal(np.array(d), target) for d in devices]


def test_the_best_fits_into_memory_although_another_is_faster():
  # A GPU has room for one of the two ops.
  cluster = clusters.make_cluster(2, memory_bytes=150)
  graph = graphs.chain(2, 10000, param_bytes=[100, 100])
  graph = graph.replace(tensor_bytes=[10])
  problem = problems.make(graph, cluster, 1.)
  target = _target(problem)
  seen = []

  def propose(memory, see):
    seen.append(memory)
    winner = see(_proposals(target, [1, 1], [1, 2]))
    assert winner.devices.tolist() == [1, 2]
    assert see(_proposals(target, [2, 2])) is winner

  placement = partitioning.best(problem, propose)
  # A faster placement overflows, so further rounds balance memory, too.
  assert placement.devices.tolist() == [1, 2] and seen == [0., .5, 1.]


def test_where_the_fastest_fits_only_work_is_shared_out():
  problem = problems.make(graphs.make_graph(num_ops=2), seconds=1.)
  seen = []

  def propose(memory, see):
    seen.append(memory)
    see(_proposals(_target(problem), [1, 1], [1, 2]))

  assert partitioning.best(problem, propose).devices.tolist() == [1, 2]
  assert seen == [0.]


def test_memory_is_shared_out_where_nothing_fits():
  cluster = clusters.make_cluster(2, memory_bytes=150)
  graph = graphs.make_graph(num_ops=2, param_bytes=100)
  problem = problems.make(graph, cluster, 1.)
  target = _target(problem)

  def propose(memory, see):
    see(_proposals(target, [1, 1] if memory < 1 else [2, 1]))

  assert partitioning.best(problem, propose).devices.tolist() == [2, 1]


def test_the_least_overflow_where_nothing_can_fit():
  cluster = clusters.make_cluster(2, memory_bytes=50)
  problem = problems.make(graphs.make_graph(num_ops=2, param_bytes=100),
                          cluster, 1.)
  target = _target(problem)
  placement = partitioning.best(
      problem, lambda *a: a[-1](_proposals(target, [1, 1], [1, 2])))
  assert placement.devices.tolist() == [1, 2]


def test_a_second_round_that_fails_costs_only_itself():
  """If the second round failed, proposals of the first were once lost."""
  problem = problems.make(graphs.make_graph(num_ops=2), seconds=1.)

  def first(targets):
    return _proposals(targets[-1], [1, 2])

  def fails(targets):
    assert targets
    raise errors.GdpError('The library died.')

  found = partitioning.best_of_two_rounds(problem, first, fails)
  assert found.devices.tolist() == [1, 2]
  with pytest.raises(errors.GdpError, match='died'):
    partitioning.best_of_two_rounds(problem, fails, first)


def test_no_second_round_begins_after_the_time_budget():
  """A process of a library once began, and may take at least 10 s."""
  now, asked = [0.], []
  problem = problems.make(graphs.make_graph(num_ops=2), seconds=1.,
                          time_budget_s=5., clock=lambda: now[0])

  def propose(name, takes_s):

    def proposals(targets):
      asked.append(name)
      now[0] += takes_s
      return _proposals(targets[-1], [1, 2])

    return proposals

  for takes_s in 1., 6.:
    partitioning.best_of_two_rounds(problem, propose('first', takes_s),
                                    propose('second', 0.))
  assert asked == ['first', 'second', 'first']


def _print_in_c(line):
  native = ctypes.CDLL(None)
  native.puts(line)
  native.fflush(None)


def test_lines_of_c_code_are_dropped_and_those_of_other_threads_are_not(capfd):
  """While METIS ran, all lines of the program once went to /dev/null."""
  with partition_process.stdout_dropped():
    _print_in_c(b'noise')
    os.write(1, b'a line of another thread\n')
  _print_in_c(b'kept')
  assert capfd.readouterr().out == 'a line of another thread\nkept\n'


def test_overlapping_calls_restore_the_output(capfd):
  """The second of two calls once restored the /dev/null of the first."""
  first = partition_process.stdout_dropped()
  second = partition_process.stdout_dropped()
  first.__enter__()
  second.__enter__()
  first.__exit__(None, None, None)
  _print_in_c(b'noise')
  second.__exit__(None, None, None)
  _print_in_c(b'kept')
  assert capfd.readouterr().out == 'kept\n'


def test_a_program_without_standard_output_is_partitioned():
  """METIS once failed where descriptor 1 is closed or sys.stdout is None."""

  def close_and_print():
    sys.stdout = None
    os.close(1)
    with partition_process.stdout_dropped():
      _print_in_c(b'noise')
    with pytest.raises(OSError):
      os.fstat(1)

  _in_a_fork(close_and_print)


def test_a_fork_prints_though_another_thread_drops_output(capfd):
  with partition_process.stdout_dropped():
    _in_a_fork(lambda: _print_in_c(b'of the child'))
  assert capfd.readouterr().out == 'of the child\n'


def test_a_fork_within_a_call_drops_output_later(capfd):

  def leave_and_call_again():
    dropped.__exit__(None, None, None)
    with partition_process.stdout_dropped():
      _print_in_c(b'noise')
    _print_in_c(b'kept')

  dropped = partition_process.stdout_dropped()
  with dropped:
    _in_a_fork(leave_and_call_again)
  assert capfd.readouterr().out == 'kept\n'


def _in_a_fork(function):
  """Runs a function in a forked child. The function must not raise."""
  child = os.fork()
  if not child:
    try:
      function()
      os._exit(0)
    finally:
      os._exit(1)
  assert os.waitpid(child, 0)[1] == 0


@pytest.mark.e2e
def test_a_worker_that_fails_is_one_line():
  with pytest.raises(errors.GdpError, match='placer "scotch" failed: .*Error'):
    partition_process.Worker('scotch', 'scotch').run('nonsense', 60)
  assert 'scotchpy' not in sys.modules


def _seeds(*seeds):
  return [dict(seed=seed) for seed in seeds]


def test_a_job_that_ends_the_process_costs_only_itself(monkeypatch):
  asked = []

  def call(function, jobs, timeout_s, environment):
    assert function.endswith('.any_worker:run') and environment == {'A': 'b'}
    assert timeout_s > 0
    asked.append(len(jobs))
    if any(job['seed'] == 'crash' for job in jobs):
      raise calls.CallError('it died')
    return [np.array([job['seed']]) for job in jobs]

  monkeypatch.setattr(calls, 'call', call)
  worker = partition_process.Worker('any', 'placer', {'A': 'b'})
  found = worker.run_each(_seeds(0, 1, 'crash', 3, 4), deadlines.NEVER)
  assert [None if parts is None else parts[0] for parts in found
         ] == [0, 1, None, 3, 4]
  assert asked == [5, 2, 3, 1, 2]
  with pytest.raises(errors.GdpError, match='"placer" failed: it died'):
    worker.run_each(_seeds('crash', 'crash', 'crash'), deadlines.NEVER)


def test_jobs_that_took_too_long_do_not_run_again(monkeypatch):
  """Each half of the jobs once got all of the time again."""
  now, times = [0.], []

  def run(worker, jobs, timeout_s):
    del worker
    times.append(timeout_s)
    # The process with all jobs crashes. The process with the first half hangs.
    now[0] += 3 if len(jobs) == 4 else timeout_s
    raise errors.GdpError('died')

  monkeypatch.setattr(partition_process.Worker, 'run', run)
  monkeypatch.setattr(
      deadlines, 'within',
      lambda seconds: deadlines.Deadline(now[0] + seconds, lambda: now[0]))
  with pytest.raises(errors.GdpError, match='died'):
    partition_process.Worker('any', 'any').run_each(
        _seeds(0, 1, 2, 3), deadlines.Deadline(20., lambda: now[0]))
  assert times == [20, 17]


@pytest.fixture(name='times')
def _times(monkeypatch):
  """Function of a deadline; returns timeout and `begin_by_s` of a job.

  `time.monotonic` is 100 s.
  """
  found = []

  def run(worker, jobs, timeout_s):
    del worker
    found.append((timeout_s, jobs[0]['begin_by_s']))
    return [None]

  def times(deadline):
    partition_process.Worker('any', 'any').run_each(_seeds(0), deadline)
    return found[-1]

  monkeypatch.setattr(partition_process.Worker, 'run', run)
  monkeypatch.setattr(partition_process.time, 'monotonic', lambda: 100.)
  monkeypatch.setattr(deadlines, 'within',
                      lambda seconds: deadlines.Deadline(seconds, lambda: 0.))
  return times


def test_jobs_take_no_longer_than_the_time_budget(times):
  assert times(deadlines.Deadline(52., lambda: 2.)) == (50, 150)
  assert times(deadlines.Deadline(9e9, lambda: 2.)) == (600, 9e9 + 98)
  assert times(deadlines.NEVER) == (600, math.inf)
  # A process has time to start, even if no time is left.
  assert times(deadlines.Deadline(50., lambda: 50.)) == (10, 100)


def test_a_clock_that_stands_still_stops_no_job(times):
  """Repeatable placements once depended on the speed of the machine."""
  for budget_s in 0., 50.:
    assert times(deadlines.Deadline(budget_s,
                                    deadlines.still)) == (600, math.inf)


def _job(number, begin_by_s):
  job = partition_process.PartitionJob(None, None, None, None, 0., number)
  return dataclasses.replace(job, begin_by_s=begin_by_s)


def test_no_job_but_the_first_begins_after_the_time_budget(monkeypatch):
  """All jobs once ran, even in a short time budget."""
  now = [0.]
  monkeypatch.setattr(partition_process.time, 'monotonic', lambda: now[0])

  def run(job):
    now[0] += 3
    return job.seed

  jobs = [_job(number, begin_by_s=7.) for number in range(5)]
  assert partition_process.in_time(jobs, run) == [0, 1, 2, None, None]
  assert partition_process.in_time(jobs, run) == [0] + [None] * 4
  endless = [_job(number, begin_by_s=math.inf) for number in range(5)]
  assert partition_process.in_time(endless, run) == [0, 1, 2, 3, 4]


def test_distances_in_whole_numbers():
  distances = np.array([[0, 2., 3.], [2, 0, 8.1], [3, 8.1, 0]])
  assert partition_process.lengths(distances, 4).tolist() == [[0, 4, 6],
                                                              [4, 0, 16],
                                                              [6, 16, 0]]


def test_links_that_take_no_time_are_short_and_none_is_too_long():
  """Empty tensors over links without latency once overflowed in Scotch."""
  distances = np.array([[0, 0, 1e-6], [0, 0, 1e9], [1e-6, 1e9, 0]])
  found = partition_process.lengths(distances, 4)
  assert found[0].tolist() == [0, 1, 4] and found[1, 2] == 1 << 16
  assert partition_process.lengths(np.zeros((2, 2)), 4).tolist() == [[0, 1],
                                                                     [1, 0]]
