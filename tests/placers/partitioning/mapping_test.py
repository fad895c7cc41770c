import numpy as np
import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.placers.partitioning import mapping
from gdp_grappler.placers.partitioning import partitioning
from helpers import graphs
from helpers import problems


@pytest.fixture(name='problem')
def _problem():
  return problems.make(graphs.random_graph(0, 40), presets.preset('4xP100'))


def _map(problem, refused=()):
  """Proposals for 4, 1 and 2 devices, and how many jobs a library got."""
  targets = {
      target.num_workers: target
      for target in partitioning.make_targets(problem)
  }
  counts = []

  def run(jobs):
    counts.append(len(jobs))
    return [
        None if k in refused else np.arange(job['graph'].num_vertices)
        % len(job['shares']) for k, job in enumerate(jobs)
    ]

  proposals = mapping.map_targets(
      [(targets[count], dict(seed=0)) for count in (4, 1, 2)], problem.allowed,
      run)
  return [each.target.num_workers for each in proposals], proposals, counts


def test_one_device_comes_last_and_costs_no_job(problem):
  """Once little time was spent on maps, and then only one device was priced."""
  order, proposals, counts = _map(problem)
  assert order == [4, 2, 1] and counts == [2]
  for proposal in proposals:
    assert len(set(proposal.devices.tolist())) == proposal.target.num_workers


def test_a_job_that_is_refused_has_no_proposal(problem):
  assert _map(problem, refused=(0,))[0] == [2, 1]


def test_the_second_round_is_for_the_best_number_of_devices(
    problem, monkeypatch):
  asked = []

  def map_jobs(jobs, allowed):
    del allowed
    asked.append([(target.num_workers, given['seed']) for target, given in jobs
                 ])
    return [
        partitioning.Proposal(np.zeros(target.graph.num_vertices, int), target)
        for target, _ in jobs
    ]

  def see(proposals):
    return [each for each in proposals if each.target.num_workers == 2][0]

  monkeypatch.setattr(partitioning, 'best',
                      lambda problem, propose: propose(0., see))
  mapping.best(problem, 10_000, dict(seed=0),
               [dict(seed=1), dict(seed=2)], map_jobs)
  first, second = asked
  assert {count for count, _ in first} >= {1, 2, 4}
  assert {seed for _, seed in first} == {0}
  assert {count for count, _ in second} == {2}
  assert [seed for _, seed in second] == sorted(seed for _, seed in second)


def test_large_graphs_get_two_mappings_a_round(problem, monkeypatch):
  asked = []

  def map_jobs(jobs, allowed):
    del allowed
    asked.append(len(jobs))
    return [
        partitioning.Proposal(np.zeros(target.graph.num_vertices, int), target)
        for target, _ in jobs
    ]

  monkeypatch.setattr(
      partitioning, 'best',
      lambda problem, propose: propose(0., lambda proposals: [*proposals][-1]))
  mapping.best(problem, 1, dict(seed=0), [dict(seed=1)] * 9, map_jobs)
  assert asked == [2, 2]
