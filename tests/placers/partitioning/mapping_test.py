import types

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler.cluster import presets
from gdp_grappler.placers.partitioning import mapping
from gdp_grappler.placers.partitioning import partitioning
from helpers import graphs
from helpers import problems


@pytest.fixture(name='problem')
def _problem():
  return problems.make(graphs.random_graph(0, 40), presets.preset('4xP100'))


def _mapper(run_each, most_vertices=10_000, distances=lambda target: None):
  return mapping.Mapper(types.SimpleNamespace(run_each=run_each), distances,
                        most_vertices)


def _map(problem, refused=()):
  """Maps onto 4, 1 and 2 devices.

  Args:
    problem: The problem to place.
    refused: Numbers of jobs that the library refuses.

  Returns:
    Numbers of devices of the proposals, the proposals, and the number of jobs
    in each call of the library.
  """
  targets = {
      target.num_workers: target
      for target in partitioning.make_targets(problem)
  }
  counts = []

  def run_each(jobs, deadline):
    assert deadline is deadlines.NEVER
    counts.append(len(jobs))
    return [
        None if k in refused else np.arange(job['graph'].num_vertices)
        % len(job['shares']) for k, job in enumerate(jobs)
    ]

  proposals = _mapper(run_each).map(
      problem, [(targets[count], dict(seed=0)) for count in (4, 1, 2)],
      deadlines.NEVER)
  return [each.target.num_workers for each in proposals], proposals, counts


def test_one_device_comes_last_and_costs_no_job(problem):
  """In a short time, only a single device was once priced."""
  order, proposals, counts = _map(problem)
  assert order == [4, 2, 1] and counts == [2]
  for proposal in proposals:
    assert len(set(proposal.devices.tolist())) == proposal.target.num_workers


def test_a_job_that_is_refused_has_no_proposal(problem):
  assert _map(problem, refused=(0,))[0] == [2, 1]


def test_the_library_gets_the_distances_of_each_target(problem):
  """Without distances, a library maps as if all links were equal."""
  given = []

  def run_each(jobs, deadline):
    del deadline
    given.extend(job['distances'] for job in jobs)
    return _on_the_first(jobs)

  targets = partitioning.make_targets(problem, counts=[2, 4])
  _mapper(run_each, distances=lambda target: target.distances).map(
      problem, [(target, {}) for target in targets], deadlines.NEVER)
  assert {len(each) for each in given} >= {2, 4}
  for target, distances in zip(targets, given, strict=True):
    np.testing.assert_array_equal(distances, target.distances)


def _on_the_first(jobs):
  return [np.zeros(job['graph'].num_vertices, int) for job in jobs]


def test_the_second_round_is_for_the_best_number_of_devices(
    problem, monkeypatch):
  asked = []

  def run_each(jobs, deadline):
    del deadline
    asked.append([(len(job['shares']), job['seed']) for job in jobs])
    return _on_the_first(jobs)

  def see(proposals):
    return [each for each in proposals if each.target.num_workers == 2][0]

  monkeypatch.setattr(partitioning, 'best',
                      lambda problem, propose: propose(0., see))
  _mapper(run_each).best(problem, dict(seed=0), [dict(seed=1), dict(seed=2)])
  first, second = asked
  assert {count for count, _ in first} >= {2, 4}
  assert {seed for _, seed in first} == {0}
  assert {count for count, _ in second} == {2}
  assert [seed for _, seed in second] == sorted(seed for _, seed in second)


def test_large_graphs_get_two_mappings_a_round(problem, monkeypatch):
  counts = []

  def see(proposals):
    counts.append(len(proposals))
    return proposals[0]

  monkeypatch.setattr(partitioning, 'best',
                      lambda problem, propose: propose(0., see))
  mapper = _mapper(lambda jobs, deadline: _on_the_first(jobs), 1)
  mapper.best(problem, dict(seed=0), [dict(seed=1)] * 9)
  assert counts == [2, 2]
