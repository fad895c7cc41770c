"""The placement that a user's plan asks for: a file, or a map of layers.

A plan is applied by the names of ops. Grappler gives ops new names, and the
same model traced again has other numbers in them; so an op is first looked up
by its name, then by its name without the last number of each scope, at last
without any, where all such ops of the plan are on one device. At least half of
the ops and half of the FLOPs have to be known to the plan, or it is one for
another graph.

Groups go where most bytes of their ops are wanted, of the devices they may
have. Variables that a plan says nothing of stay where they are, and with them
what works on them; other ops are where their neighbours are.

A map of layers says where layers are. What is in no layer of the map is where
TensorFlow would put it, which is the first GPU if there is one. Updates and
slots follow their variable, whatever a pattern says of the optimizer's scope.
"""

from __future__ import annotations

import dataclasses
from typing import Iterator, Mapping, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.plans import neighbour_fill
from gdp_grappler.placers.plans import updates
from gdp_grappler.placers.simple import single_device
from gdp_grappler.reports import units

# A file, or pairs of pattern and device.
Plan = str | tuple[tuple[str, str], ...]

_MIN_SHARE = .5


class DoesNotFitError(errors.PlanError):
  """A plan is one for other graphs."""


@dataclasses.dataclass(frozen=True, eq=False)
class Planned:
  """What became of a plan.

  Attributes:
    placement: Keeps the graph's rules; with the priorities of a plan that
      names every op.
    origin: What to call it, and how far the plan was obeyed.
    notes: Of that, how much of the graph it speaks of.
    refused: Of that, what was not obeyed, and why.
    chosen: [N], of each op a clause on what the map of layers says of it; () of
      a plan.
  """

  placement: placement_lib.Placement
  origin: str
  notes: tuple[str, ...] = ()
  refused: tuple[str, ...] = ()
  chosen: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class _Wishes:
  """Devices that N ops are wanted on.

  Attributes:
    devices: int [N], -1 for no wish.
    weak: bool [N], only as far as nothing better is known.
    origin: Whose.
    notes: What a user should know.
    priorities: float64 [N] or None.
    patterns: [N], what each op matches in a map; '' for nothing.
  """

  devices: np.ndarray
  weak: np.ndarray
  origin: str
  notes: tuple[str, ...] = ()
  priorities: np.ndarray | None = None
  patterns: tuple[str, ...] = ()


def of_file(path: str) -> Plan:
  """The map of layers that a file holds, or the path of a plan.

  Raises:
    PlanError: the file is missing or damaged.
    ClusterError: the map names no device.
  """
  layers = plan_lib.read_layers(path)
  return path if layers is None else layer_map.checked(layers)


def may_round(plan: Plan | None) -> bool:
  """Whether ops may go where they compute other numbers.

  Some plans were made so. A map of layers is obeyed as a pin is: its user has
  said where the layer is to be computed.

  Raises:
    PlanError: the file is missing or damaged.
  """
  if plan is None:
    return False
  plan = of_file(plan) if isinstance(plan, str) else plan
  return not isinstance(plan, str) or plan_lib.read(plan).may_round


def place(plan: Plan, problem: placer_lib.Problem) -> Planned:
  """Places a graph as a plan has it.

  Raises:
    DoesNotFitError: it is for other graphs.
    PlanError: the file is missing or damaged, or names a device that the
      cluster lacks.
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  graph, cluster = problem.graph, problem.cluster
  plan = of_file(plan) if isinstance(plan, str) else plan
  if isinstance(plan, str):
    wishes = _of_file(plan, graph, cluster)
  else:
    wishes = _of_layers(plan, problem)
  rounds = _would_round(graph, wishes, cluster)
  devices = _of_groups(
      problem,
      dataclasses.replace(wishes,
                          devices=np.where(rounds, -1,
                                           wishes.devices)))[graph.groups]
  refused = tuple(_refused(problem, wishes, rounds, devices))
  return Planned(placement_lib.Placement(devices, cluster, wishes.priorities),
                 f'{wishes.origin} ({"; ".join((*wishes.notes, *refused))})',
                 wishes.notes, refused, tuple(_chosen(wishes, devices)))


def _of_file(path: str, graph: op_graph.OpGraph,
             cluster: cluster_lib.Cluster) -> _Wishes:
  plan = plan_lib.read(path)
  candidates = _candidates(plan.devices, graph.names)
  known = np.array([bool(found) for found in candidates])
  share, work = known.mean(), _share_of_flops(graph, known)
  if min(share, work) < _MIN_SHARE:
    raise DoesNotFitError(
        f'plan {path} was made for "{plan.graph}" and knows {share:.0%} of '
        f'the ops and {work:.0%} of the FLOPs; it takes {_MIN_SHARE:.0%}')
  index = {
      device: plan_lib.device_index(path, device, plan, cluster)
      for device in dict.fromkeys(plan.devices.values())
  }
  devices = np.array([
      index[next(iter(found))] if len(found) == 1 else -1
      for found in candidates
  ])
  exact = np.array([op in plan.devices for op in graph.names])
  priorities = None
  if plan.priorities is not None and exact.all():
    priorities = np.array([plan.priorities[op] for op in graph.names])
  return _Wishes(devices, np.zeros(graph.num_ops, bool), f'plan {path}',
                 _by_name(devices, exact), priorities)


def _candidates(devices: Mapping[str, str],
                names: Sequence[str]) -> list[set[str]]:
  """Devices of each op in a plan, by the most of its name that is known."""
  result: list[set[str]] = [set()] * len(names)
  for spelled in (str, layer_map.bare_name, layer_map.plain_name):
    known: dict[str, set[str]] = {}
    for op, device in devices.items():
      known.setdefault(spelled(op), set()).add(device)
    result = [
        found or known.get(spelled(op), set())
        for found, op in zip(result, names)
    ]
  return result


def _by_name(devices: np.ndarray, exact: np.ndarray) -> tuple[str, ...]:
  others = (devices >= 0) & ~exact
  parts = (f'{exact.sum()} ops by name',
           f'{others.sum()} by name without numbers' if others.any() else '',
           f'{(devices < 0).sum()} beside them' if (devices < 0).any() else '')
  return ', '.join(filter(None, parts)),


def _share_of_flops(graph: op_graph.OpGraph, chosen: np.ndarray) -> float:
  flops = graph.flops * graph.executions
  return float(flops[chosen].sum() / flops.sum()) if flops.any() else 1.


def _of_layers(layers: Sequence[tuple[str, str]],
               problem: placer_lib.Problem) -> _Wishes:
  graph, cluster = problem.graph, problem.cluster
  patterns = [pattern for pattern, _ in layers]
  found = layer_map.match(patterns, graph.names)
  by_layer = (found.patterns >= 0) & ~found.only_default
  if found.idle and not by_layer.any():
    raise DoesNotFitError(f'no op is in {" or in ".join(found.idle)}')
  index = np.array(
      [_device(pattern, device, cluster) for pattern, device in layers] + [-1])
  # The pattern 'a*' is meant for layers, but matches the scope 'adam' as well.
  of_optimizer = updates.in_optimizers(graph)
  of_layers = np.unique(found.patterns[by_layer & ~of_optimizer])
  by_accident = by_layer & of_optimizer & np.isin(found.patterns, of_layers)
  by_layer &= ~by_accident
  elsewhere = np.flatnonzero(found.patterns < 0)
  wanted = np.where(by_accident, -1, index[found.patterns])
  wanted[elsewhere] = by_default(problem).devices[elsewhere]
  return _Wishes(
      wanted, ~by_layer, 'the map of layers',
      tuple(_said_of_layers(patterns, found, by_layer, index, graph)),
      patterns=tuple(
          patterns[i] if i >= 0 else ''
          for i in np.where(by_accident, -1, found.patterns).tolist()))


def _chosen(wishes: _Wishes, devices: np.ndarray) -> Iterator[str]:
  """What a map of layers says of each op, which is on `devices` [N]."""
  for pattern, wanted, device in zip(wishes.patterns, wishes.devices.tolist(),
                                     devices.tolist()):
    if pattern and wanted == device:
      yield f'the map of layers has "{pattern}" there'
    elif pattern:
      yield (f'the map of layers has "{pattern}" elsewhere, but it stays with '
             'what it belongs to')
    elif wanted == device:
      yield 'no layer of the map has it, and TensorFlow puts it there'
    else:
      yield 'no layer of the map has it, and it is with what it belongs to'


def _said_of_layers(patterns: Sequence[str], found: layer_map.Matches,
                    by_layer: np.ndarray, index: np.ndarray,
                    graph: op_graph.OpGraph) -> Iterator[str]:
  """What a user should know of a map."""
  yield f'{by_layer.sum()} ops by layer'
  outside = int((found.patterns < 0).sum())
  if outside:
    yield f'{outside} in none, which are where TensorFlow puts them'
  if found.idle:
    yield f'Warning: no op is in {" or in ".join(found.idle)}'
  yield from _conflicts(patterns, np.where(by_layer, found.patterns, -1), index,
                        graph)


def _conflicts(patterns: Sequence[str], wanted: np.ndarray, index: np.ndarray,
               graph: op_graph.OpGraph) -> Iterator[str]:
  """Of variables that layers of different devices share.

  Args:
    patterns: Of the map.
    wanted: int [N], the pattern of each op; -1 for none.
    index: int, the device of each pattern.
    graph: N ops.
  """
  holds = graph.holds_variables
  ops = np.flatnonzero((wanted >= 0) & holds[graph.groups])
  # Of each group and device an op and its pattern.
  pairs, first = np.unique(np.stack([graph.groups[ops], index[wanted[ops]]]),
                           axis=1, return_index=True)
  groups, counts = np.unique(pairs[0], return_counts=True)
  shared = groups[counts > 1]
  if not shared.size:
    return
  some, other = wanted[ops[first[pairs[0] == shared[0]]]][:2]
  of_group = np.flatnonzero(graph.groups == shared[0])
  more = shared.size - 1
  others = f' and {units.count(more, "other variable")}' if more else ''
  yield (f'Warning: "{patterns[some]}" and "{patterns[other]}" share '
         f'"{graph.label(graph.holder(of_group))}"{others}: what is shared is '
         'where most bytes of its ops are wanted')


def by_default(problem: placer_lib.Problem) -> placement_lib.Placement:
  """Where TensorFlow puts a step that nobody places.

  Where it was when it was read; if no GPU was there and the cluster has some,
  on the first of them.
  """
  graph, cluster = problem.graph, problem.cluster
  gpu = single_device.first_device(cluster, 'GPU')
  if gpu is not None and not any(map(_names_gpu, set(graph.devices))):
    return single_device.OnlyDevicePlacer(gpu).place(problem)
  was = _as_it_was(graph, cluster)
  instead = constraints.fallback_devices(problem.allowed, cluster.host)
  return placement_lib.Placement(np.where(was < 0, instead[graph.groups], was),
                                 cluster)


def _names_gpu(device: str) -> bool:
  return cluster_lib.device_type(device) == 'GPU'


def _device(pattern: str, device: str, cluster: cluster_lib.Cluster) -> int:
  try:
    return cluster.device_index(device)
  except errors.ClusterError as error:
    raise errors.PlanError(
        f'The plan puts "{pattern}" where it cannot go. {error} Use one of '
        'these.') from error


def _of_groups(problem: placer_lib.Problem, wishes: _Wishes) -> np.ndarray:
  """int [G]: wishes first, then what was of variables, then neighbours."""
  graph, allowed = problem.graph, problem.allowed
  holds = graph.holds_variables
  result = _voted(problem, np.where(wishes.weak, -1, wishes.devices))
  # Variables that cannot move draw their updates to them.
  fixed = (allowed.sum(axis=1) == 1) & holds
  result = np.where(fixed, allowed.argmax(axis=1), result)
  if wishes.weak.any():
    return _rest(problem, result, wishes)
  was = _as_it_was(graph, problem.cluster)
  result = np.where((result < 0) & holds, _voted(problem, was), result)
  result = neighbour_fill.follow(graph, result, allowed)
  anywhere = _voted(problem, np.where(was < 0, problem.cluster.host, was))
  return np.where(result < 0, anywhere, result)


def _rest(problem: placer_lib.Problem, devices: np.ndarray,
          wishes: _Wishes) -> np.ndarray:
  """int [G], with weak wishes for what has no device yet, -1 in `devices`.

  Slots, and what computes updates, are where their variable is.
  """
  graph, allowed = problem.graph, problem.allowed
  weak = _voted(problem, np.where(wishes.weak, wishes.devices, -1))
  free = np.bincount(graph.groups, ~updates.serving(graph),
                     graph.num_groups) > 0
  free[graph.groups[updates.of_one_variable(graph)
                    | updates.sums(graph)]] = False
  result = np.where((devices < 0) & free, weak, devices)
  result = neighbour_fill.follow(graph, result, allowed)
  anywhere = constraints.fallback_devices(allowed, problem.cluster.host)
  return np.where(result < 0, np.where(weak < 0, anywhere, weak), result)


def _voted(problem: placer_lib.Problem, wanted: np.ndarray) -> np.ndarray:
  """int [G], where most bytes of a group are wanted; -1 for no wish."""
  graph, allowed = problem.graph, problem.allowed
  ops = np.flatnonzero(wanted >= 0)
  votes = np.zeros(allowed.shape)
  np.add.at(votes, (graph.groups[ops], wanted[ops]),
            graph.output_bytes[ops] + graph.param_bytes[ops] + 1.)
  asked = votes.any(axis=1)
  votes[~allowed] = 0.
  fallback = constraints.fallback_devices(allowed, problem.cluster.host)
  best = np.where(votes.any(axis=1), votes.argmax(axis=1), fallback)
  return np.where(asked, best, -1)


def _as_it_was(graph: op_graph.OpGraph,
               cluster: cluster_lib.Cluster) -> np.ndarray:
  """int [N], devices the graph came with; -1 for none."""
  index = {name: i for i, name in enumerate(cluster.device_names)}
  return np.array([index.get(name, -1) for name in graph.devices], int)


def _refused(problem: placer_lib.Problem, wishes: _Wishes, rounds: np.ndarray,
             devices: np.ndarray) -> Iterator[str]:
  """What is not where it was wanted."""
  graph, cluster = problem.graph, problem.cluster
  wrong = (wishes.devices >= 0) & ~wishes.weak & (wishes.devices != devices)
  holds = graph.holds_variables
  rounds = rounds & (wishes.devices != devices)
  of_state = wrong & holds[graph.groups] & ~rounds
  if of_state.any():
    yield f'{of_state.sum()} stay with their variables'
  if rounds.any():
    yield (f'{rounds.sum()} would be rounded otherwise where it says, such as '
           f'"{graph.label(int(rounds.argmax()))}": may_round allows it')
  others = np.flatnonzero(wrong & ~of_state & ~rounds)
  if others.size:
    op = others[0]
    yield (f'{others.size} cannot be where it says, such as '
           f'"{graph.label(op)}", which is on '
           f'{cluster.device_labels[devices[op]]}')


def _would_round(graph: op_graph.OpGraph, wishes: _Wishes,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [N], what might be where it is wanted if numbers did not count."""
  free = constraints.allowed_devices(graph.replace(may_round=True), cluster)
  ruled = constraints.allowed_devices(graph, cluster)
  wanted = np.maximum(wishes.devices, 0)
  return (free & ~ruled)[graph.groups, wanted] & (wishes.devices >= 0)
