"""Placements of every quality, from single devices to deliberately bad ones.

All are legal: each decides per group. A label says how a placement was made,
as `layers split 2`; its family is the label's first word.
"""

from __future__ import annotations

import re

import numpy as np

from benchmarks.fidelity import graphs
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry

_MODULE = re.compile(r'layer\d+/\w+')
_SEARCH_ROUNDS = 24
_PROPOSALS = 24


def suite(graph: op_graph.OpGraph, simulator: simulator_lib.Simulator,
          seed: int = 0) -> dict[str, placement_lib.Placement]:
  """Label -> placement, at least 40, no two alike.

  Args:
    graph: One of `graphs.BUILDERS`.
    simulator: On two devices; prices the searches.
    seed: Of everything random.
  """
  rng = np.random.default_rng(seed)
  layers = _of_groups(graph, graphs.layers(graph))
  found = {}
  for device in (0, 1):
    found[f'single device {device}'] = np.full(graph.num_groups, device)
  for count in range(1, layers.max() + 1):
    found[f'expert split before layer {count}'] = (layers >= count).astype(int)
  found['expert split, other way'] = (layers <= layers.max() // 2).astype(int)
  found['expert every other layer'] = layers % 2
  for i in range(12):
    found[f'layers at random {i}'] = rng.integers(0, 2,
                                                  layers.max() + 1)[layers]
  modules = _of_groups(graph, _modules(graph))
  for i in range(10):
    found[f'modules at random {i}'] = rng.integers(0, 2,
                                                   modules.max() + 1)[modules]
  for i in range(3):
    found[f'metis {i}'] = _metis(graph, simulator, i)
  searched = _searches(graph, simulator, found, rng)
  found.update(searched)
  best = found['searched to the end']
  for share in (.002, .01, .03, .1, .3):
    found[f'disturbed: {share:.1%} of the best'] = _disturbed(best, share, rng)
    found[f'disturbed: {share:.1%} of one device'] = _disturbed(
        np.zeros_like(best), share, rng)
  for i in range(3):
    found[f'bad: groups at random {i}'] = rng.integers(0, 2, graph.num_groups)
  for size in (5, 40):
    found[f'bad: blocks of {size} ops in turn'] = _blocks(graph, size)
  return _distinct(graph, found, simulator.cluster)


def _of_groups(graph, labels) -> np.ndarray:
  """int [G], the most frequent label of a group's ops."""
  counts = np.zeros((graph.num_groups, labels.max() + 1), int)
  np.add.at(counts, (graph.groups, labels), 1)
  return counts.argmax(axis=1)


def _modules(graph) -> np.ndarray:
  """int [N]: parts of layers by name, else the layer."""
  names = [
      match[0] if (match := _MODULE.search(name)) else f'layer{layer}'
      for name, layer in zip(graph.names, graphs.layers(graph))
  ]
  return np.unique(names, return_inverse=True)[1]


def _metis(graph, simulator, seed) -> np.ndarray:
  placement = registry.create('metis').place(
      placer_lib.Problem(graph, simulator.cluster, simulator, seed))
  return _by_group(graph, placement.devices)


def _searches(graph, simulator, starts, rng) -> dict[str, np.ndarray]:
  """Hill climbing from the best start, kept at several heights."""
  prices = _prices(graph, simulator, np.stack(list(starts.values())))
  current = list(starts.values())[int(prices.argmin())]
  price, result = prices.min(), {}
  neighbours = _neighbours(graph)
  for turn in range(_SEARCH_ROUNDS):
    if turn and turn % 4 == 0:
      result[f'searched for {turn} rounds'] = current
    proposals = np.stack(
        [_moved(current, neighbours, rng) for _ in range(_PROPOSALS)])
    prices = _prices(graph, simulator, proposals)
    if prices.min() < price:
      price, current = prices.min(), proposals[int(prices.argmin())]
  return {**result, 'searched to the end': current}


def _prices(graph, simulator, by_group) -> np.ndarray:
  allowed = constraints.allowed_devices(graph, simulator.cluster)
  rows = np.arange(graph.num_groups)
  by_group = np.where(allowed[rows, by_group], by_group, allowed.argmax(axis=1))
  return simulator.price_groups(graph, by_group).seconds


def _neighbours(graph) -> list[list[int]]:
  result = [[] for _ in range(graph.num_groups)]
  for source, target in graph.groups[graph.edges].tolist():
    result[source].append(target)
    result[target].append(source)
  return result


def _moved(devices, neighbours, rng) -> np.ndarray:
  """A connected cluster of random size on the other device."""
  start = int(rng.integers(len(devices)))
  size = int(np.exp(rng.uniform(0, np.log(len(devices) / 2))))
  inside, frontier = {start}, list(neighbours[start])
  while frontier and len(inside) < size:
    group = frontier.pop(int(rng.integers(len(frontier))))
    if group not in inside:
      inside.add(group)
      frontier += neighbours[group]
  result = devices.copy()
  result[list(inside)] = 1 - devices[start]
  return result


def _disturbed(devices, share, rng) -> np.ndarray:
  """At least one group, at most `share` of them, on the other device."""
  count = max(1, round(share * len(devices)))
  result = devices.copy()
  chosen = rng.choice(len(devices), count, replace=False)
  result[chosen] = 1 - result[chosen]
  return result


def _blocks(graph, size) -> np.ndarray:
  position = np.empty(graph.num_ops, int)
  position[graph.topological_order] = np.arange(graph.num_ops)
  return _by_group(graph, position // size % 2)


def _by_group(graph, devices) -> np.ndarray:
  """int [G], the device of each group's first op."""
  first = np.unique(graph.groups, return_index=True)[1]
  return np.asarray(devices)[first]


def _distinct(graph, found, cluster) -> dict[str, placement_lib.Placement]:
  """Placements of their own; groups without a choice are where they must be."""
  allowed = constraints.allowed_devices(graph, cluster)
  rows = np.arange(graph.num_groups)
  seen, result = set(), {}
  for label, devices in found.items():
    devices = np.where(allowed[rows, devices], devices, allowed.argmax(axis=1))
    placement = placement_lib.from_groups(graph, devices, cluster)
    key = placement.devices.tobytes()
    if key not in seen:
      seen.add(key)
      result[label] = placement
  return result
