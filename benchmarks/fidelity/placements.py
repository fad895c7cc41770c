"""Placements of different quality, some of them deliberately bad.

All placements are legal, because they decide per group. The label of a
placement tells how it was made, such as `layers split 2`. The first word of the
label is its family.
"""

from __future__ import annotations

import itertools
import re
from typing import Iterator, Mapping, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry

_SEARCH_ROUNDS = 24  # Rounds of the hill climbing.
_SEARCH_S = 10.  # Time budget of a placer.
_PROPOSALS = 24  # Moves that a round of the hill climbing prices.
# Number of placements with modules at random in the suite.
_MODULES = 10
# Least number of placements. Random ones are added until it is reached.
_LEAST = 40
_AT_RANDOM = 'modules at random '
# Random placements that `further` draws at most.
_DRAWS = 100
# Share of the modules that a draw moves.
_DISTURBED = .05


def suite(graph: op_graph.OpGraph, simulator: simulator_lib.Simulator,
          layers: np.ndarray, modules: np.ndarray, seed: int = 0,
          max_splits: int = 100) -> dict[str, placement_lib.Placement]:
  """Returns distinct placements by label, 40 or more for several layers.

  Args:
    graph: N ops.
    simulator: Simulator of a cluster with two or more accelerators. It prices
      placements in the searches.
    layers: int [N], number of the layer of each op.
    modules: int [N], number of the part of a layer.
    seed: Seed of all random numbers.
    max_splits: Largest number of placements that cut the model between two
      layers.
  """
  rng = np.random.default_rng(seed)
  num_places = len(simulator.cluster.accelerators)
  layers = _of_groups(graph, layers)
  found = {}
  for place in range(num_places):
    found[f'single device {place}'] = np.full(graph.num_groups, place)
  last = int(layers.max())
  for count in np.linspace(1, last, min(last, max_splits)).astype(int).tolist():
    found[f'expert split before layer {count}'] = (layers >= count).astype(int)
  found['expert split, other way'] = (num_places - 1
                                      - _equal_blocks(layers, num_places))
  found['expert every other layer'] = layers % num_places
  for i in range(12):
    found[f'layers at random {i}'] = rng.integers(0, num_places,
                                                  layers.max() + 1)[layers]
  modules = _of_groups(graph, modules)
  for i in range(_MODULES):
    found[f'{_AT_RANDOM}{i}'] = rng.integers(0, num_places,
                                             modules.max() + 1)[modules]
  for i in range(3):
    found[f'metis {i}'] = _metis(graph, simulator, i)
  searched = _searches(graph, simulator, found, rng)
  found.update(searched)
  best = found['searched to the end']
  for share in (.002, .01, .03, .1, .3):
    found[f'disturbed: {share:.1%} of the best'] = _disturbed(
        best, share, num_places, rng)
    found[f'disturbed: {share:.1%} of one device'] = _disturbed(
        np.zeros_like(best), share, num_places, rng)
  for i in range(3):
    found[f'bad: groups at random {i}'] = rng.integers(0, num_places,
                                                       graph.num_groups)
  for size in (5, 40):
    found[f'bad: blocks of {size} ops in turn'] = _blocks(
        graph, size, num_places)
  result = _distinct(graph, found, simulator.cluster)
  missing = max(0, _LEAST - len(result))
  return result | dict(
      itertools.islice(_drawn(graph, simulator.cluster, modules, result, rng),
                       missing))


def further(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
            modules: np.ndarray, known: Mapping[str, placement_lib.Placement],
            seed: int = 0) -> Iterator[tuple[str, placement_lib.Placement]]:
  """Returns placements that the suite lacks, with modules at random.

  Args:
    graph: N ops.
    cluster: Cluster of the suite.
    modules: int [N], number of the part of a layer.
    known: The suite. The result has none of its placements.
    seed: Seed of all random numbers.
  """
  return _drawn(graph, cluster, _of_groups(graph, modules), known,
                np.random.default_rng([seed, 1]))


def _drawn(
    graph: op_graph.OpGraph, cluster: cluster_lib.Cluster, modules: np.ndarray,
    known: Mapping[str, placement_lib.Placement],
    rng: np.random.Generator) -> Iterator[tuple[str, placement_lib.Placement]]:
  """Yields random placements of whole modules, all distinct.

  If a placement is known, some of its groups move, and it is tried again.
  """
  seen = {placement.devices.tobytes() for placement in known.values()}
  number = sum(label.startswith(_AT_RANDOM) for label in known)
  for _ in range(_DRAWS):
    num_places, label = len(cluster.accelerators), f'{_AT_RANDOM}{number}'
    by_group = rng.integers(0, num_places, modules.max() + 1)[modules]
    placement = _placement(graph, by_group, cluster)
    if placement.devices.tobytes() in seen:
      label += ', disturbed'
      placement = _placement(graph,
                             _disturbed(by_group, _DISTURBED, num_places, rng),
                             cluster)
    if placement.devices.tobytes() not in seen:
      seen.add(placement.devices.tobytes())
      yield label, placement
      number += 1


def by_placers(
    graph: op_graph.OpGraph, simulator: simulator_lib.Simulator,
    names: Sequence[str], seed: int = 0,
    expert_devices: np.ndarray | None = None
) -> dict[str, placement_lib.Placement]:
  """Returns the placements of placers by label. They minimize robust prices.

  Args:
    graph: N ops.
    simulator: Prices steps.
    names: Names of placers in the registry.
    seed: Seed of the placers.
    expert_devices: int [N], devices by the human expert. None if no expert has
      placed the graph.
  """
  problem = placer_lib.Problem(graph, simulator.cluster,
                               robust_evaluator.objective(simulator), seed,
                               expert_devices, _SEARCH_S)
  return {
      f'placer {name}': registry.create(name).place(problem) for name in names
  }


def modules_by_name(graph: op_graph.OpGraph, layers: np.ndarray,
                    pattern: re.Pattern[str]) -> np.ndarray:
  """int [N], the pattern's match in the name of each op, else its layer."""
  names = [
      match[0] if (match := pattern.search(name)) else f'layer{layer}'
      for name, layer in zip(graph.names, layers)
  ]
  return np.unique(names, return_inverse=True)[1]


def _equal_blocks(layers: np.ndarray, count: int) -> np.ndarray:
  """Returns int [G], contiguous blocks of layers."""
  return layers * count // (int(layers.max()) + 1)


def _of_groups(graph: op_graph.OpGraph, labels: np.ndarray) -> np.ndarray:
  """Returns int [G], the most frequent label of each group's ops."""
  counts = np.zeros((graph.num_groups, labels.max() + 1), int)
  np.add.at(counts, (graph.groups, labels), 1)
  return counts.argmax(axis=1)


def _metis(graph: op_graph.OpGraph, simulator: simulator_lib.Simulator,
           seed: int) -> np.ndarray:
  placement = registry.create('metis').place(
      placer_lib.Problem(graph, simulator.cluster, simulator, seed))
  places = np.zeros(simulator.cluster.num_devices, int)
  places[list(simulator.cluster.accelerators)] = np.arange(
      len(simulator.cluster.accelerators))
  return places[placement.devices][graph.first_ops]


def _searches(graph: op_graph.OpGraph, simulator: simulator_lib.Simulator,
              starts: dict[str, np.ndarray],
              rng: np.random.Generator) -> dict[str, np.ndarray]:
  """Hill climbing from the best start. Also returns placements on the way."""
  prices = _prices(graph, simulator, np.stack(list(starts.values())))
  current = list(starts.values())[int(prices.argmin())]
  price, result = prices.min(), {}
  num_places = len(simulator.cluster.accelerators)
  neighbours = _neighbours(graph)
  for turn in range(_SEARCH_ROUNDS):
    if turn and turn % 4 == 0:
      result[f'searched for {turn} rounds'] = current
    proposals = np.stack([
        _moved(current, neighbours, num_places, rng) for _ in range(_PROPOSALS)
    ])
    prices = _prices(graph, simulator, proposals)
    if prices.min() < price:
      price, current = prices.min(), proposals[int(prices.argmin())]
  return {**result, 'searched to the end': current}


def _prices(graph: op_graph.OpGraph, simulator: simulator_lib.Simulator,
            by_group: np.ndarray) -> np.ndarray:
  return simulator.price_groups(graph,
                                _allowed(graph, simulator.cluster,
                                         by_group)).valid_seconds


def _allowed(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
             by_group: np.ndarray) -> np.ndarray:
  """Returns devices [..., G] for accelerators by number, int [..., G].

  A group that may not be on its accelerator gets the first device that it may
  have.
  """
  allowed = constraints.allowed_devices(graph, cluster)
  devices = np.array(cluster.accelerators)[by_group]
  rows = np.arange(graph.num_groups)
  return np.where(allowed[rows, devices], devices, allowed.argmax(axis=1))


def _neighbours(graph: op_graph.OpGraph) -> list[list[int]]:
  """Returns [G], the neighbours of each group, each once."""
  result: list[list[int]] = [[] for _ in range(graph.num_groups)]
  pairs = np.unique(np.sort(graph.groups[graph.edges], axis=1), axis=0)
  for source, target in pairs.tolist():
    result[source].append(target)
    result[target].append(source)
  return result


def _moved(devices: np.ndarray, neighbours: list[list[int]], num_places: int,
           rng: np.random.Generator) -> np.ndarray:
  """Moves a connected cluster of random size to another device."""
  start = int(rng.integers(len(devices)))
  size = int(np.exp(rng.uniform(0, np.log(len(devices) / 2))))
  inside, frontier = {start}, list(neighbours[start])
  while frontier and len(inside) < size:
    # The last entry replaces the removed one, which takes constant time.
    index = int(rng.integers(len(frontier)))
    frontier[index], frontier[-1] = frontier[-1], frontier[index]
    group = frontier.pop()
    if group not in inside:
      inside.add(group)
      frontier += neighbours[group]
  result = devices.copy()
  result[list(inside)] = (devices[start]
                          + rng.integers(1, num_places)) % num_places
  return result


def _disturbed(devices: np.ndarray, share: float, num_places: int,
               rng: np.random.Generator) -> np.ndarray:
  """Returns devices of groups after a share of the groups has moved.

  At least one group moves.
  """
  count = max(1, round(share * len(devices)))
  result = devices.copy()
  chosen = rng.choice(len(devices), count, replace=False)
  result[chosen] += rng.integers(1, num_places, count)
  result[chosen] %= num_places
  return result


def _blocks(graph: op_graph.OpGraph, size: int, num_places: int) -> np.ndarray:
  position = np.empty(graph.num_ops, int)
  position[graph.topological_order] = np.arange(graph.num_ops)
  return (position // size % num_places)[graph.first_ops]


def _placement(graph: op_graph.OpGraph, by_group: np.ndarray,
               cluster: cluster_lib.Cluster) -> placement_lib.Placement:
  """Returns the placement of groups at indices of devices, int [G]."""
  return placement_lib.from_groups(graph, _allowed(graph, cluster, by_group),
                                   cluster)


def _distinct(
    graph: op_graph.OpGraph, found: dict[str, np.ndarray],
    cluster: cluster_lib.Cluster) -> dict[str, placement_lib.Placement]:
  """Returns the placements without duplicates."""
  seen, result = set(), {}
  for label, by_group in found.items():
    placement = _placement(graph, by_group, cluster)
    key = placement.devices.tobytes()
    if key not in seen:
      seen.add(key)
      result[label] = placement
  return result
