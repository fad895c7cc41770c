import dataclasses
import functools
import sys

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.placers.partitioning import metis
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import weighted_graphs


def _two_chains(length=30):
  edges = [(i, i + 1, 1 << 20) for i in range(length - 1)]
  edges += [(i + length, i + 1 + length, 1 << 20) for i in range(length - 1)]
  return graphs.make_graph([*edges, (0, length, 1, 1)], flops=1e9)


_place = functools.partial(problems.placed, metis.MetisPlacer())


def test_two_cliques_are_cut_at_the_thin_edge():
  parts = metis.cut(weighted_graphs.two_cliques(), np.full(2, .5))
  assert weighted_graphs.sides(parts) == {(0,) * 5, (1,) * 5}


def test_target_weights():
  parts = metis.cut(weighted_graphs.path(90), np.array([2 / 3, 1 / 3]))
  assert 57 <= (parts == 0).sum() <= 63
  assert (np.diff(parts) != 0).sum() == 1


def test_nothing_is_printed_for_empty_parts(capfd):
  parts = metis.cut(weighted_graphs.path(2), np.full(8, 1 / 8))
  assert parts.shape == (2,) and set(parts) <= set(range(8))
  assert capfd.readouterr().out == ''


def test_no_vertices_and_no_weight():
  assert metis.cut(weighted_graphs.path(0), np.full(4, 1 / 4)).shape == (0,)
  parts = metis.cut(weighted_graphs.path(8, weight=0.), np.full(2, .5))
  assert sorted(np.bincount(parts)) == [4, 4]


def test_cuts_where_little_is_sent():
  devices = _place(_two_chains(), clusters.make_cluster(2))
  assert len(set(devices)) == 2
  assert len(set(devices[:30])) == len(set(devices[30:])) == 1


def test_fewer_devices_where_that_is_faster():
  # A transfer takes longer than all ops together.
  cluster = clusters.make_cluster(4, latency_s=1e6)
  assert len(set(_place(graphs.chain(20, flops=1e9), cluster))) == 1


def test_a_device_twice_as_fast_gets_twice_the_work():
  cluster = clusters.make_cluster(2, latency_s=0., bandwidth_bytes_per_s=1e12)
  seconds = np.array([[99., 1., 2.]]).repeat(90, axis=0)
  devices = problems.placed(metis.MetisPlacer(), graphs.make_graph(num_ops=90),
                            cluster, seconds)
  assert 58 <= (devices == 1).sum() <= 62 and (devices == 2).sum() >= 28


def test_what_may_not_be_there_goes_to_the_host():
  types = np.ones((60, 2), bool)
  types[5, 1] = False
  graph = _two_chains().replace(allowed_types=types)
  devices = _place(graph, presets.preset('2xP100'))
  assert devices[5] == 0 and 0 not in np.delete(devices, 5)


def test_memory_decides_where_the_fastest_does_not_fit():
  cluster = clusters.make_cluster(2, latency_s=1e6, memory_bytes=1000)
  graph = graphs.chain(10, 1, flops=1e9, param_bytes=150)
  devices = _place(graph, cluster)
  assert (np.bincount(devices, minlength=3) * 150 <= 1000).all()


def test_one_accelerator_or_none():
  assert set(_place(_two_chains(), presets.preset('1xP100'))) == {1}
  assert set(_place(_two_chains(), clusters.make_cluster(0))) == {0}


def test_few_cuts_when_the_time_is_over():
  problem = problems.make(_two_chains(), presets.preset('4xP100'))
  watched = recording_evaluator.Recorder(problem.evaluator)
  hurried = dataclasses.replace(problem, evaluator=watched, time_budget_s=0.)
  placement = metis.MetisPlacer().place(hurried)
  assert problem.evaluator.evaluate(problem.graph, placement).valid
  # The first cut, a cut of the next round, and each single device are priced.
  assert watched.evaluations <= 2 + problem.cluster.num_devices


def test_without_pymetis(monkeypatch):
  monkeypatch.setitem(sys.modules, 'pymetis', None)
  with pytest.raises(errors.GdpError, match='needs the package pymetis'):
    _place(_two_chains(), clusters.make_cluster(2))


def test_a_few_cuts_are_legal_and_over_several_accelerators():
  problem = problems.make(_two_chains(), presets.preset('4xP100'))
  rows = np.stack(list(metis.few_cuts(problem)))
  assert (problem.allowed[np.arange(rows.shape[1]), rows]).all()
  gpus = set(problem.cluster.accelerators)
  used = [gpus & set(row.tolist()) for row in rows]
  assert used[0] == gpus
  assert {len(devices) for devices in used} == {2, 4}


def test_half_of_two_accelerators_is_not_cut():
  problem = problems.make(_two_chains())
  rows = list(metis.few_cuts(problem))
  assert len(rows) == 7
  for row in rows:
    assert set(problem.cluster.accelerators) <= set(row.tolist())


def test_neighbouring_seeds_are_different_seeds():
  """METIS gives equal cuts for the seeds 0 and 1."""
  graph = weighted_graphs.make([1.] * 576, [
      *((k, k + 1, 1.) for k in range(575) if (k + 1) % 24),
      *((k, k + 24, 1.) for k in range(552))
  ])
  shares = np.full(4, 1 / 4)
  cuts = {
      metis._cut(graph, shares, False, 30, seed).tobytes() for seed in range(4)
  }
  assert len(cuts) == 4


def test_large_seeds_are_different_seeds(monkeypatch):
  """All seeds above the largest seed of METIS once gave one cut."""
  library, seeds = metis._pymetis(), []
  stock = library.Options

  def options(**given):
    seeds.append(given['seed'])
    return stock(**given)

  monkeypatch.setattr(library, 'Options', options)
  shares = np.array([.5, .5])
  for seed in (-1, 0, (1 << 31) - 1, 1 << 31, (1 << 31) + 5, 1 << 40):
    metis._cut(weighted_graphs.path(4), shares, False, 30, seed)
  assert seeds == [-1, 1, 1, 2, 7, 513]
