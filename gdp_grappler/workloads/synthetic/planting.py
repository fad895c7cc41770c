"""Makes a placement, and memories that it fills to a given share."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph

# Share of placements in which stages take the cards in turn, not in blocks.
_CYCLIC = .3


def devices(rng: np.random.Generator, graph: op_graph.OpGraph,
            stages: np.ndarray, cluster: cluster_lib.Cluster) -> np.ndarray:
  """Places each stage on one card, in blocks of equal work or in turn, int [N].

  Args:
    rng: Generator that draws one of the two ways, and the order of the cards.
    graph: N ops.
    stages: int [N], stages of the ops, from 0.
    cluster: Cluster with the cards.
  """
  cards = rng.permutation(np.array(cluster.accelerators))
  work = np.bincount(
      stages,
      roofline.Roofline().op_seconds(graph, cluster)[:, cards].mean(axis=1))
  if rng.random() < _CYCLIC:
    of_stage = cards[np.arange(len(work)) % len(cards)]
  else:
    middle = (np.cumsum(work) - work / 2) / max(work.sum(), 1e-30)
    of_stage = cards[np.minimum((middle * len(cards)).astype(int),
                                len(cards) - 1)]
  first = graph.first_ops
  of_group = of_stage[stages[first]]
  allowed = constraints.allowed_devices(graph, cluster)
  fallback = constraints.fallback_devices(allowed, cluster.host)
  legal = allowed[np.arange(len(of_group)), of_group]
  return np.where(legal, of_group, fallback)[graph.groups]


def fitted(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
           placed: np.ndarray, fullness: float) -> cluster_lib.Cluster:
  """The cluster with other memories, which a placement fills.

  Cards of one kind stay alike: the fullest of them is filled to the wanted
  share. Hosts keep their memory unless it is too small.

  Args:
    graph: N ops.
    cluster: Cluster of the placement.
    placed: int [N], the placement.
    fullness: Share of a memory that is in use at the peak, at most 1.
  """
  peaks = simulator.Simulator(cluster, threads=1).price(
      graph, placed[None]).peak_bytes[0][cluster.memory_pools]
  most: dict[object, int] = {}
  for device, peak in zip(cluster.devices, peaks.tolist()):
    most[_kind(device)] = max(most.get(_kind(device), 0), peak)
  resized = []
  for device in cluster.devices:
    wanted = max(math.ceil(most[_kind(device)] / fullness), 1)
    size = max(wanted, device.memory_bytes) if device.type == 'CPU' else wanted
    resized.append(
        dataclasses.replace(device, memory_bytes=size, memory_margin=0.))
  return dataclasses.replace(cluster, devices=tuple(resized))


def _kind(device: cluster_lib.Device) -> object:
  return (device.type, device.peak_flops, device.bandwidth_bytes_per_s)
