"""Applies a user's plan to a graph: a plan file, or a map of layers.

A plan file names the device of each op. An op is looked up by its name, and by
shorter forms of its name (`op_matching`). A form counts only if the plan puts
all ops with this form on one device. The plan has to know at least a given
share of the ops and of the FLOPs (`_MIN_SHARE`). Otherwise the plan is for
another graph.

A plan may name several devices for the ops of one group. The group then gets
the allowed device that has most bytes of these ops. A variable that the plan
does not name stays on its device, and so do the ops that use the variable. All
other ops get the device of their neighbours.

A map of layers names the devices of layers. An op in no layer of the map gets
the device that it had when the graph was read. If no op was on a GPU, it gets
the first GPU, as TensorFlow would choose. Updates and slots get the device of
their variable, even if a pattern of the map matches the optimizer's scope.
"""

from __future__ import annotations

import dataclasses
from typing import Iterator, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import layer_devices
from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.plans import layer_notes
from gdp_grappler.placers.plans import layers as layers_lib
from gdp_grappler.placers.plans import misfits
from gdp_grappler.placers.plans import neighbour_fill
from gdp_grappler.placers.plans import op_matching
from gdp_grappler.placers.plans import part_names
from gdp_grappler.placers.plans import updates
from gdp_grappler.placers.simple import single_device
from gdp_grappler.reports import units

# Path of a plan file, or a map of layers.
Plan = str | plan_lib.Layers

# Share of the ops, and of the FLOPs, that a plan has to know.
_MIN_SHARE = .5


@dataclasses.dataclass(frozen=True, eq=False)
class Planned:
  """The placement that a plan gives.

  Attributes:
    placement: A legal placement. It has the plan's priorities if the plan names
      every op.
    origin: Name of the plan, with the notes and the refused wishes.
    notes: Notes about the number of ops that the plan names.
    refused: Wishes of the plan that were not met, with the reason.
    chosen: [N], for each op a clause about the map of layers; () for a plan
      file.
  """

  placement: placement_lib.Placement
  origin: str
  notes: tuple[str, ...] = ()
  refused: tuple[str, ...] = ()
  chosen: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class _Wishes:
  """The devices that a plan wants for N ops.

  Attributes:
    devices: int [N], -1 for an op without a wish.
    weak: bool [N], wishes that count only if a group has no other wishes.
    origin: Name of the plan.
    notes: Notes for the user.
    priorities: float64 [N] or None.
    patterns: [N], pattern of a map that each op matches; None for none.
    owners: [N], pattern that the variable of each op matches, and its device.
  """

  devices: np.ndarray
  weak: np.ndarray
  origin: str
  notes: tuple[str, ...] = ()
  priorities: np.ndarray | None = None
  patterns: tuple[str | None, ...] = ()
  owners: tuple[tuple[str, int], ...] = ()


def of_file(path: str) -> Plan:
  """The map of layers in a file; the path if the file is a plan of ops.

  Raises:
    PlanError: the file is missing or damaged.
    ClusterError: a value of the map is no device.
  """
  layers = plan_lib.read_layers(path)
  return path if layers is None else layer_devices.of_file(path, layers)


def may_round(plan: Plan | None) -> bool:
  """Whether a plan may put ops on devices that round differently.

  A plan file has a field for this. A map of layers always may, like a device
  scope, because the user has chosen the devices of the layers.

  Raises:
    PlanError: the file is missing or damaged.
  """
  if plan is None:
    return False
  plan = of_file(plan) if isinstance(plan, str) else plan
  return not isinstance(plan, str) or plan_lib.read(plan).may_round


def place(plan: Plan, problem: placer_lib.Problem) -> Planned:
  """Places a graph by a plan.

  Args:
    plan: The plan.
    problem: The graph and the cluster.

  Raises:
    DoesNotFitError: the plan is for another graph.
    PlanError: the file is missing or damaged, or the cluster lacks a device of
      the plan.
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  graph, cluster = problem.graph, problem.cluster
  plan = of_file(plan) if isinstance(plan, str) else plan
  if isinstance(plan, str):
    wishes = _of_file(plan, graph, cluster)
  else:
    wishes = _of_layers(plan, problem)
  rounds = _would_round(graph, wishes, cluster)
  kept = dataclasses.replace(wishes, devices=np.where(rounds, -1,
                                                      wishes.devices))
  devices = _of_groups(problem, kept)[graph.groups]
  refused = tuple(_refused(problem, wishes, rounds, devices))
  return Planned(placement_lib.Placement(devices, cluster, wishes.priorities),
                 f'{wishes.origin} ({"; ".join((*wishes.notes, *refused))})',
                 wishes.notes, refused, tuple(_chosen(problem, wishes,
                                                      devices)))


def chosen(layers: plan_lib.Layers, problem: placer_lib.Problem,
           placement: placement_lib.Placement) -> tuple[str, ...]:
  """Clauses that explain each op's device by the map of layers.

  Args:
    layers: The map; () for none.
    problem: The graph, N ops, and the cluster.
    placement: Placement that the map once gave.

  Returns:
    [N] clauses; () without a map, or if the map is not for this graph and
    cluster.
  """
  if not layers:
    return ()
  try:
    wishes = _of_layers(layer_map.checked(dict(layers)), problem)
  except errors.GdpError:
    return ()
  return tuple(_chosen(problem, wishes, placement.devices))


def _of_file(path: str, graph: op_graph.OpGraph,
             cluster: cluster_lib.Cluster) -> _Wishes:
  plan = plan_lib.read(path)
  candidates = op_matching.candidates(plan.devices, graph.names)
  # Several devices are no device: another model has such names, too.
  known = np.array([len(devices) == 1 for devices in candidates])
  flops = graph.flops * graph.executions
  share = known.mean()
  work = flops[known].sum() / flops.sum() if flops.any() else 1.
  if min(share, work) < _MIN_SHARE:
    raise misfits.DoesNotFitError(
        f'plan {path} was made for "{plan.graph}" and knows {share:.0%} of '
        f'the ops and {work:.0%} of the FLOPs; {_MIN_SHARE:.0%} are needed')
  index = {
      device: plan_lib.device_index(path, device, plan, cluster)
      for device in dict.fromkeys(plan.devices.values())
  }
  devices = np.array(
      [index[next(iter(own))] if len(own) == 1 else -1 for own in candidates])
  exact = np.array([op in plan.devices for op in graph.names])
  priorities = None
  if plan.priorities is not None and exact.all():
    priorities = np.array([plan.priorities[op] for op in graph.names])
  return _Wishes(devices, np.zeros(graph.num_ops, bool), f'plan {path}',
                 _by_name(devices, exact), priorities)


def _by_name(devices: np.ndarray, exact: np.ndarray) -> tuple[str, ...]:
  others = (devices >= 0) & ~exact
  parts = (f'{units.count(exact.sum(), "op")} by name',
           f'{others.sum()} by name with other numbers' if others.any() else '',
           f'{(devices < 0).sum()} not named' if (devices < 0).any() else '')
  return ', '.join(filter(None, parts)),


def _of_layers(layers: Sequence[tuple[str, str]],
               problem: placer_lib.Problem) -> _Wishes:
  graph, cluster = problem.graph, problem.cluster
  patterns = [pattern for pattern, _ in layers]
  matches = layer_map.match(patterns, part_names.of(graph),
                            layers_lib.names(graph))
  by_layer = (matches.patterns >= 0) & ~matches.only_default
  if matches.idle and not by_layer.any():
    raise misfits.NoLayerError(layer_notes.without_ops(matches, graph),
                               matches.is_near)
  index = np.array(
      [_device(pattern, device, cluster) for pattern, device in layers] + [-1])
  # A pattern such as 'a*' is for layers, but also matches the scope 'adam'.
  of_optimizer = updates.in_optimizers(graph)
  of_layers = np.unique(matches.patterns[by_layer & ~of_optimizer])
  by_accident = by_layer & of_optimizer & np.isin(matches.patterns, of_layers)
  by_layer &= ~by_accident
  elsewhere = np.flatnonzero(matches.patterns < 0)
  wanted = np.where(by_accident, -1, index[matches.patterns])
  wanted[elsewhere] = by_default(problem).devices[elsewhere]
  return _Wishes(
      wanted, ~by_layer, 'the map of layers',
      tuple(layer_notes.of(patterns, matches, by_layer, index, graph)),
      patterns=tuple(
          patterns[i] if i >= 0 else None
          for i in np.where(by_accident, -1, matches.patterns).tolist()),
      owners=_owners(patterns, index, graph))


def _owners(patterns: Sequence[str], index: np.ndarray,
            graph: op_graph.OpGraph) -> tuple[tuple[str, int], ...]:
  """[N], the pattern that holds for an op's variable, and its device."""
  of_variables = layer_devices.match(patterns, graph.variables)
  found = np.where(of_variables.only_default, -1, of_variables.patterns)
  return tuple(
      (patterns[i] if i >= 0 else '', int(index[i])) for i in found.tolist())


def _chosen(problem: placer_lib.Problem, wishes: _Wishes,
            devices: np.ndarray) -> Iterator[str]:
  """Clauses that explain the device int [N] of each op by a map of layers."""
  may_be = problem.allowed[problem.graph.groups, wishes.devices]
  for pattern, (owner, its), weak, met, may, device in zip(
      wishes.patterns, wishes.owners, wishes.weak, wishes.devices == devices,
      may_be, devices):
    if pattern is not None and met and not (weak and its == device):
      yield f'the map of layers has "{pattern}" there'
    elif its == device:
      yield f'the map of layers has "{owner}" there, which it belongs to'
    elif pattern is not None and not may:
      yield (f'the map of layers has "{pattern}" on another device, where this '
             'op or its group may not be')
    elif not weak:
      yield (f'the map of layers has "{pattern}" on another device, but other '
             'ops of its group decide')
    elif met:
      yield 'no layer of the map has it, and TensorFlow puts it there'
    else:
      yield 'no layer of the map has it, and it is with its neighbours'


def by_default(problem: placer_lib.Problem) -> placement_lib.Placement:
  """The placement that TensorFlow would choose.

  Ops keep the devices that they had when the graph was read. If none of these
  is a GPU and the cluster has GPUs, all ops get the first GPU.

  Args:
    problem: The graph and the cluster.
  """
  graph, cluster = problem.graph, problem.cluster
  gpu = single_device.first_device(cluster, 'GPU')
  was_on = {cluster_lib.device_type(device) for device in set(graph.devices)}
  if gpu is not None and 'GPU' not in was_on:
    return single_device.all_on(problem, gpu)
  was = _devices_when_read(graph, cluster)
  instead = constraints.fallback_devices(problem.allowed, cluster.host)
  return placement_lib.Placement(np.where(was < 0, instead[graph.groups], was),
                                 cluster)


def _device(pattern: str, device: str, cluster: cluster_lib.Cluster) -> int:
  try:
    return cluster.device_index(device)
  except errors.ClusterError as error:
    raise errors.PlanError(
        f'The plan puts "{pattern}" where it cannot go. {error} Use one of '
        'these.') from error


def _of_groups(problem: placer_lib.Problem, wishes: _Wishes) -> np.ndarray:
  """int [G], devices by wishes, else of variables, else of neighbours."""
  graph, allowed = problem.graph, problem.allowed
  holds = graph.holds_variables
  unnamed = wishes.weak | updates.carriers(graph)
  result = _voted(problem, np.where(unnamed, -1, wishes.devices))
  # The updates of a variable that cannot move get the variable's device.
  fixed = (allowed.sum(axis=1) == 1) & holds
  result = np.where(fixed, allowed.argmax(axis=1), result)
  if wishes.weak.any():
    return _rest(problem, result, wishes)
  was = _devices_when_read(graph, problem.cluster)
  result = np.where((result < 0) & holds, _voted(problem, was), result)
  result = neighbour_fill.follow(graph, result, allowed)
  anywhere = _voted(problem, np.where(was < 0, problem.cluster.host, was))
  return np.where(result < 0, anywhere, result)


def _rest(problem: placer_lib.Problem, devices: np.ndarray,
          wishes: _Wishes) -> np.ndarray:
  """int [G], devices with weak wishes for groups that have -1 in `devices`.

  Slots and updates get the device of their variable.
  """
  graph, allowed = problem.graph, problem.allowed
  weak = _voted(problem, np.where(wishes.weak, wishes.devices, -1))
  # The value of a loss may have no reader but the update of a metric. `serving`
  # is true for such an op, although the op belongs to its layer.
  of_updates = layers_lib.after_forward(graph) | updates.in_optimizers(graph)
  serves = updates.serving(graph) & (of_updates
                                     | graph.holds_variables[graph.groups])
  free = np.bincount(graph.groups, ~serves, graph.num_groups) > 0
  free[graph.groups[(updates.of_one_variable(graph) | updates.sums(graph))
                    & of_updates]] = False
  result = np.where((devices < 0) & free, weak, devices)
  result = neighbour_fill.follow(graph, result, allowed, readers_first=True)
  anywhere = constraints.fallback_devices(allowed, problem.cluster.host)
  return np.where(result < 0, np.where(weak < 0, anywhere, weak), result)


def _voted(problem: placer_lib.Problem, wanted: np.ndarray) -> np.ndarray:
  """int [G], device on which most bytes of a group are wanted; -1 for none."""
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


def _devices_when_read(graph: op_graph.OpGraph,
                       cluster: cluster_lib.Cluster) -> np.ndarray:
  """int [N], device of each op when the graph was read; -1 for none."""
  index = {name: i for i, name in enumerate(cluster.device_names)}
  return np.array([index.get(name, -1) for name in graph.devices], int)


def _refused(problem: placer_lib.Problem, wishes: _Wishes, rounds: np.ndarray,
             devices: np.ndarray) -> Iterator[str]:
  """Texts on the wishes that the placement does not meet."""
  graph, cluster = problem.graph, problem.cluster
  wrong = (wishes.devices >= 0) & ~wishes.weak & (wishes.devices != devices)
  holds = graph.holds_variables
  rounds = rounds & (wishes.devices != devices)
  of_state = wrong & holds[graph.groups] & ~rounds
  if of_state.any():
    yield (f'{units.count(of_state.sum(), "op")} ' +
           ('stays with its variable'
            if of_state.sum() == 1 else 'stay with their variables'))
  if rounds.any():
    yield (f'{rounds.sum()} would round differently on the wanted device, such '
           f'as "{graph.label(int(rounds.argmax()))}": may_round allows it')
  others = np.flatnonzero(wrong & ~of_state & ~rounds)
  if others.size:
    op = others[0]
    yield (f'{others.size} cannot be on the wanted device, such as '
           f'"{graph.label(op)}", which is on '
           f'{cluster.device_labels[devices[op]]}')


def _would_round(graph: op_graph.OpGraph, wishes: _Wishes,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [N], ops whose wish is illegal only because of rounding."""
  free = constraints.allowed_devices(graph.replace(may_round=True), cluster)
  ruled = constraints.allowed_devices(graph, cluster)
  wanted = np.maximum(wishes.devices, 0)
  return (free & ~ruled)[graph.groups, wanted] & (wishes.devices >= 0)
