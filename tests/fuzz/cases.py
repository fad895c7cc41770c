"""Draws random problems of several families by a seed.

A family is a function from a generator to a `Case`. `FAMILIES` has the
frequency of each family. A new family needs a line there.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from helpers import clusters
from helpers import graphs
from helpers import tight_memory

# Share of each memory that a planted placement fills.
_FILLS = .85, .95


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
  """One problem.

  Attributes:
    family: Name of the family.
    graph: N ops in G groups.
    cluster: D devices.
    seconds: float64 [N, D], seconds of each op on each device.
    planted: int32 [G], a placement that fits; None if none is known.
  """

  family: str
  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  seconds: np.ndarray
  planted: np.ndarray | None = None


# `Case` without its family.
Draft = tuple[op_graph.OpGraph, cluster_lib.Cluster, np.ndarray,
              np.ndarray | None]


def make(seed: int) -> Case:
  """Returns the case of a seed, which is the same on every machine."""
  rng = np.random.default_rng(seed)
  names = list(FAMILIES)
  shares = np.array([FAMILIES[name][1] for name in names], float)
  family = names[int(rng.choice(len(names), p=shares / shares.sum()))]
  return Case(family, *FAMILIES[family][0](rng))


def random_cluster(rng: np.random.Generator,
                   memory_bytes: int = 1 << 50) -> cluster_lib.Cluster:
  """Returns a host with up to six GPUs of different speeds and links.

  Sometimes one of the GPUs is a second CPU, several GPUs share a chip or a
  memory, all links share a channel, or one link is slow. Some GPUs are
  asynchronous.
  """
  count = int(rng.integers(0, 7))
  chips = [f'chip {d // 2}' for d in range(count)]
  cluster = clusters.make_cluster(
      count, latency_s=float(rng.choice([0, 1e-6, 1e-4])),
      bandwidth_bytes_per_s=float(rng.choice([1e8, 1e10, 1e12])),
      memory_bytes=memory_bytes, compute=_one_of(rng, None, ['host', *chips]),
      memory=_one_of(rng, None, ['host', *chips]),
      channels=_one_of(rng, None, lambda a, b: ('bus',), lambda a, b:
                       (f'{min(a, b)} {max(a, b)}',)))
  if count > 1 and rng.random() < .2:
    cluster = clusters.as_cpu(cluster, int(rng.integers(1, count + 1)))
  with_cpu = {d.compute for d in cluster.devices if d.type == 'CPU'}
  launched = {
      d.compute: _launch(rng) for d in cluster.devices
      if d.compute not in with_cpu
  }
  devices = [
      dataclasses.replace(d,
                          **launched.get(d.compute) or _host_work(rng))
      for d in cluster.devices
  ]
  links = list(cluster.links)
  if links and rng.random() < .3:
    slow = int(rng.integers(len(links)))
    links[slow] = dataclasses.replace(links[slow], latency_s=.1,
                                      bandwidth_bytes_per_s=1e6)
  return dataclasses.replace(cluster, devices=devices, links=links,
                             step_s=float(rng.choice([0, 1e-3])))


def _host_work(rng: np.random.Generator) -> dict[str, Any]:
  """Returns fields of a `Device` with or without copy engines."""
  works = rng.random() < .5
  return dict(slots=int(rng.integers(1, 4)), copy_s=1e-6 * works,
              copy_bytes_per_s=1e9 if works else None)


def _launch(rng: np.random.Generator) -> dict[str, Any]:
  """Returns fields of a `Device` that all devices of a chip share."""
  if rng.random() < .5:
    return dict(launch=cluster_lib.SYNCHRONOUS)
  return dict(launch=cluster_lib.ASYNCHRONOUS,
              dispatch_s=float(rng.choice([0, 1e-6, 1e-5])),
              callback_s=float(rng.choice([0, 1e-5])))


def _one_of(rng: np.random.Generator, *choices: Any) -> Any:
  return choices[int(rng.integers(len(choices)))]


def _seconds(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
             rng: np.random.Generator) -> np.ndarray:
  """Returns float64 [N, D], about a millisecond; devices differ in speed."""
  speeds = np.exp(rng.normal(0, rng.choice([0, .5, 2]), cluster.num_devices))
  own = rng.exponential(1e-3, (graph.num_ops, 1))
  return own * speeds * np.exp(
      rng.normal(0, .3, (graph.num_ops, cluster.num_devices)))


def _graph(rng: np.random.Generator, num_ops: int) -> op_graph.OpGraph:
  return graphs.random_graph(int(rng.integers(1 << 30)), num_ops,
                             fan_in=float(rng.choice([.7, 1.8, 3])),
                             window=int(rng.choice([2, 10, 60])),
                             control=float(rng.choice([0, .1, .5])))


def _size(rng: np.random.Generator, least: int, most: int) -> int:
  """Returns a number of ops, drawn log-uniformly."""
  return int(np.exp(rng.uniform(np.log(least), np.log(most))))


def _small(rng: np.random.Generator) -> Draft:
  """Draws graphs of few ops, whose whole step can be checked."""
  graph, cluster = _graph(rng, int(rng.integers(1, 25))), random_cluster(rng)
  return graph, cluster, _seconds(graph, cluster, rng), None


def _medium(rng: np.random.Generator) -> Draft:
  graph, cluster = _graph(rng, _size(rng, 25, 400)), random_cluster(rng)
  return graph, cluster, _seconds(graph, cluster, rng), None


def _restricted(rng: np.random.Generator) -> Draft:
  """Draws graphs with missing kernels, pins, and ops that must not round."""
  graph, cluster, seconds, _ = (_small, _medium)[int(rng.integers(2))](rng)
  kernels = np.ones((graph.num_ops, 2), bool)
  kernels[:, 1] = (rng.random(graph.num_groups) < .7)[graph.groups]
  names = [device.short_name for device in cluster.devices]
  wanted = rng.integers(len(names), size=graph.num_groups)
  pinned = rng.random(graph.num_groups) < rng.choice([.02, .3])
  pins = [
      names[wanted[group]] if pinned[group] else '' for group in graph.groups
  ]
  on_gpu = np.array([device.type == 'GPU' for device in cluster.devices])
  kernels[:, 1] |= (pinned & on_gpu[wanted])[graph.groups]
  homes = rng.choice(3, graph.num_groups, p=[.4, .1, .5])
  same = np.array([[0, 1], [1, 0], [1, 1]], bool)[homes]
  graph = graph.replace(allowed_types=kernels, pins=pins,
                        user_pins=rng.random(graph.num_ops) < .5,
                        same_numbers=same[graph.groups])
  return graph, cluster, seconds, None


def _planted(rng: np.random.Generator) -> Draft:
  """Draws graphs with parameters on most ops, which nearly fill memories."""
  graph = _graph(rng, _size(rng, 8, 300))
  sizes = rng.integers(0, 1 << int(rng.integers(12, 30)), graph.num_ops)
  graph = graph.replace(param_bytes=sizes * (rng.random(graph.num_ops) < .6))
  cluster = random_cluster(rng)
  seconds = _seconds(graph, cluster, rng)
  planted = _scattered(graph, cluster, rng)
  return graph, _filled(graph, cluster, seconds, planted, rng), seconds, planted


def _scattered(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               rng: np.random.Generator) -> np.ndarray:
  """Returns int32 [G], random devices or intervals of the order."""
  if rng.random() < .5:
    return rng.integers(cluster.num_devices,
                        size=graph.num_groups).astype(np.int32)
  first = np.unique(graph.groups[graph.topological_order], return_index=True)[1]
  at = np.argsort(np.argsort(first)) * cluster.num_devices // graph.num_groups
  return rng.permutation(cluster.num_devices)[at].astype(np.int32)


def _filled(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
            seconds: np.ndarray, planted: np.ndarray,
            rng: np.random.Generator) -> cluster_lib.Cluster:
  """Returns the cluster with memories that a placement nearly fills."""
  allowed = constraints.allowed_devices(graph, cluster)
  assert allowed[np.arange(graph.num_groups), planted].all()
  peaks = simulator.Simulator(cluster,
                              clusters.FixedCosts(seconds)).price_groups(
                                  graph, planted[None]).peak_bytes[0]
  room = np.maximum(peaks / rng.uniform(*_FILLS, len(peaks)), 1).astype(int) + 1
  return dataclasses.replace(
      cluster, devices=[
          dataclasses.replace(device, memory_bytes=int(room[pool]))
          for device, pool in zip(cluster.devices, cluster.memory_pools)
      ])


def _layers(rng: np.random.Generator) -> Draft:
  """Draws networks whose weights nearly fill the GPUs."""
  names = list(tight_memory.NETWORKS)
  case = tight_memory.case(names[int(rng.integers(len(names)))],
                           int(rng.integers(2, 15)),
                           float(rng.uniform(*_FILLS)),
                           rng.random() < .5, clusters.FixedCosts)
  return case.graph, case.cluster, case.seconds, case.planted


def _zero(rng: np.random.Generator) -> Draft:
  """Draws graphs whose ops, tensors or both take no time."""
  graph, cluster, seconds, planted = _planted(rng)
  if rng.random() < .5:
    seconds = np.zeros_like(seconds)
  else:
    seconds = seconds * (rng.random(seconds.shape) < .3)
  if rng.random() < .5:
    graph = graph.replace(tensor_bytes=np.zeros(len(graph.tensor_ops)))
  # Without seconds other tensors may live at the same time.
  return graph, _filled(graph, cluster, seconds, planted, rng), seconds, planted


def _extreme(rng: np.random.Generator) -> Draft:
  """Draws graphs with huge and tiny tensors and seconds."""
  graph, cluster, seconds, _ = _medium(rng)
  exponents = rng.integers(0, 50, len(graph.tensor_ops))
  powers = rng.uniform(-15, float(rng.choice([-9, 3, 12])), (graph.num_ops, 1))
  return (graph.replace(tensor_bytes=2.**exponents),
          _small_memory(cluster,
                        rng), np.broadcast_to(10.**powers,
                                              seconds.shape).copy(), None)


def _small_memory(cluster: cluster_lib.Cluster,
                  rng: np.random.Generator) -> cluster_lib.Cluster:
  """Returns, half of the time, a cluster too small for most graphs."""
  size = int(rng.choice([1, 1 << 59]))
  return dataclasses.replace(
      cluster, devices=[
          dataclasses.replace(device, memory_bytes=size)
          for device in cluster.devices
      ])


def _degenerate(rng: np.random.Generator) -> Draft:
  """Draws graphs of one op, of one group, or without data edges."""
  count = int(rng.integers(2, 30))
  graph = _one_of(
      rng, graphs.make_graph(num_ops=1), graphs.make_graph(num_ops=count),
      graphs.chain(count, groups=[0] * count), graphs.chain(count, 0),
      graphs.make_graph([(i, i + 1) for i in range(count - 1)], count))
  cluster = random_cluster(rng)
  return graph, cluster, _seconds(graph, cluster, rng), None


def _wide(rng: np.random.Generator) -> Draft:
  """Draws graphs of many ops side by side."""
  count = int(rng.choice([1_000, 10_000]))
  edges = [(0, i, 1 << 10) for i in range(1, count - 1)]
  edges += [(i, count - 1, 1 << 10, 1) for i in range(1, count - 1)]
  graph, cluster = graphs.make_graph(edges, count), random_cluster(rng)
  return graph, cluster, _seconds(graph, cluster, rng), None


def _deep(rng: np.random.Generator) -> Draft:
  """Draws graphs of many ops in a row."""
  graph = graphs.chain(int(rng.choice([1_000, 10_000])), 1 << 16)
  cluster = random_cluster(rng)
  return graph, cluster, _seconds(graph, cluster, rng), None


# Frequency of each family.
FAMILIES: dict[str, tuple[Callable[[np.random.Generator], Draft], float]] = {
    'small': (_small, 40), 'medium': (_medium, 10),
    'restricted': (_restricted, 16), 'planted': (_planted, 14),
    'layers': (_layers, 1), 'zero': (_zero, 8), 'extreme': (_extreme, 4),
    'degenerate': (_degenerate, 5), 'wide': (_wide, .5), 'deep': (_deep, .5)
}
