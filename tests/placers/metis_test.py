import sys

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.placers import metis
from gdp_grappler.placers import placer as placer_lib
from helpers import clusters
from helpers import graphs


def _two_chains(length=30):
  edges = [(i, i + 1, 1000) for i in range(length - 1)]
  edges += [(i + length, i + 1 + length, 1000) for i in range(length - 1)]
  return graphs.make_graph([*edges, (0, length, 1)], flops=1e9)


def _place(graph, cluster, seed=0):
  return metis.MetisPlacer().place(
      placer_lib.Problem(graph, cluster, None, seed)).devices


def test_cuts_where_little_is_sent_and_leaves_the_cpu_out():
  devices = _place(_two_chains(), clusters.make_cluster(2))
  assert set(devices) == {1, 2}
  assert len(set(devices[:30])) == len(set(devices[30:])) == 1


def test_parts_have_equal_work():
  graph = graphs.chain(100, flops=1e9)
  devices = _place(graph, clusters.make_cluster(4))
  counts = np.bincount(devices, minlength=5)
  assert counts[0] == 0 and counts[1:].min() >= 22 and counts.max() <= 28


def test_what_may_not_be_there_goes_to_the_host():
  types = np.ones((60, 2), bool)
  types[5, 1] = False
  graph = _two_chains().replace(allowed_types=types)
  devices = _place(graph, clusters.make_cluster(2))
  assert devices[5] == 0 and set(np.delete(devices, 5)) == {1, 2}


def test_one_accelerator_or_none():
  assert set(_place(_two_chains(), clusters.make_cluster(1))) == {1}
  assert set(_place(_two_chains(), clusters.make_cluster(0))) == {0}


def test_a_graph_without_edges_and_one_op():
  cluster = clusters.make_cluster(2)
  assert len(_place(graphs.make_graph(num_ops=9), cluster)) == 9
  assert len(_place(graphs.make_graph(num_ops=1), cluster)) == 1


def test_without_pymetis(monkeypatch):
  monkeypatch.setitem(sys.modules, 'pymetis', None)
  with pytest.raises(errors.GdpError, match='needs the package pymetis'):
    _place(_two_chains(), clusters.make_cluster(2))
