"""Plans of train steps: the devices of ops, and the variables that move."""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Any, Collection, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import types_pb2

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import pins
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.plans import planned
from gdp_grappler.plugin import decisions
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import task_links
from gdp_grappler.plugin.fitting import counters
from gdp_grappler.plugin.fitting import host_creation

# Grappler rewrites a step slightly differently if its variables are on other
# devices. So a plan may lack a few ops of the step. A graph with a larger share
# of unknown ops is another step.
_LARGEST_UNKNOWN_SHARE = .1


@dataclasses.dataclass(frozen=True, eq=False)
class FitPlan:
  """The devices of a step and of its variables.

  Attributes:
    devices: Full device by the name of a node.
    moves: Variables and the full names of their devices.
    outcome: The optimizer's decision.
    has_streams: Whether the step draws random numbers from streams that
      restart with every instantiation.
    function: TensorFlow's name of the step.
    graph: The step's serialized GraphDef; b'' if no variable moves.
  """

  devices: Mapping[str, str]
  moves: tuple[tuple[Any, str], ...]
  outcome: outcome_lib.Outcome
  has_streams: bool = False
  function: str = ''
  graph: bytes = b''

  @property
  def moved_bytes(self) -> int:
    """Size of the variables that move, in bytes."""
    return sum(
        v.dtype.size * (v.shape.num_elements() or 0) for v, _ in self.moves)

  @property
  def counts(self) -> dict[str, int]:
    """Numbers of ops by 'GPU:0' or, with several hosts, by 'worker/1/GPU:0'."""
    names = sorted(self.devices.values())
    hosts = set(map(cluster_lib.task, names))
    label = cluster_lib.short_name if len(
        hosts) == 1 else cluster_lib.host_label
    return dict(collections.Counter(map(label, names)))

  def describe(self, function: str = '') -> str:
    """Returns a line about the plan and its variables for the user.

    Args:
      function: TensorFlow's name of the step that the line is about; '' for the
        planned one. For a step that was traced later nothing moves any more.
    """
    if not self.moves or function not in ('', self.function):
      return self.outcome.message
    return (f'{self.outcome.message}; {len(self.moves)} variables moved, '
            f'{self.moved_bytes / 1e6:.2f} MB')

  @property
  def may_stay(self) -> bool:
    """Whether steps may run as they were.

    If not, they would exceed a memory, or an op would not be on the device of
    its pin.
    """
    return self.outcome.fitted and self.outcome.before_s != math.inf

  @property
  def changes(self) -> bool:
    """Whether the plan changes a device or an edge."""
    return self.outcome.devices is not None


def make(source: source_graph.SourceGraph, settings: settings_lib.Settings,
         variables: Mapping[int, Any], function: str = '',
         asked: Collection[int] = ()) -> FitPlan:
  """Plans a step whose variables may move.

  Args:
    source: The graph with the devices TensorFlow gave it.
    settings: The user's option.
    variables: Variables that may move, by the number of the argument.
    function: TensorFlow's name of the step.
    asked: Numbers of the arguments whose variables stay because of `tf.device`.

  Raises:
    GdpError: the settings do not fit the graph or the machine.
  """
  fixed, waiting = [], []
  counting = counters.ops(source.graph_def.node)
  for i, node in enumerate(source.graph_def.node):
    is_argument = pins.is_variable_argument(node)
    variable = variables.get(node.attr['index'].i) if is_argument else None
    if is_argument and host_creation.waits_on_host(variable):
      waiting.append(i)
    elif node.name in counting or is_argument and variable is None:
      fixed.append(i)
  marked = _marked(source, fixed, asked, waiting)
  outcome = decisions.optimize(marked, settings, relocatable=True, fixed=fixed,
                               waiting=waiting)
  if outcome.devices is None:
    return FitPlan({}, (), outcome)
  nodes = source.graph_def.node
  streams = any(map(pins.draws_from_a_stream, nodes))
  moves = tuple((variables[node.attr['index'].i], device)
                for node, device in zip(nodes, outcome.devices)
                if pins.is_variable_argument(node) and device != node.device)
  devices = {node.name: d for node, d in zip(nodes, outcome.devices)}
  graph = source.graph_def.SerializeToString() if moves else b''
  return FitPlan(devices, moves, outcome, streams, function, graph)


def _marked(source: source_graph.SourceGraph, fixed: Sequence[int],
            asked: Collection[int],
            waiting: Sequence[int]) -> source_graph.SourceGraph:
  """Returns a copy of the graph with marks on nodes that stay or wait."""
  if not fixed and not waiting:
    return source
  graph_def = type(source.graph_def)()
  graph_def.CopyFrom(source.graph_def)
  for index in waiting:
    graph_def.node[index].attr[pins.WAITS_ATTRIBUTE].b = True
  for index in fixed:
    node = graph_def.node[index]
    node.attr[pins.LEAVE_ALONE_ATTRIBUTE].b = True
    if pins.is_variable_argument(node) and node.attr['index'].i in asked:
      node.attr[pins.ASKED_ATTRIBUTE].s = node.device.encode()
  return dataclasses.replace(source, graph_def=graph_def)


def follow(source: source_graph.SourceGraph, settings: settings_lib.Settings,
           plan: FitPlan, function: str = '') -> outcome_lib.Outcome:
  """Returns devices for a step whose variables have the devices of a plan.

  The graph differs a little from the planned one, because Grappler rewrites
  graphs by their devices. For example, Grappler joins x + b and a later sum
  with c only if both are on one device, and the result rounds differently. So
  the planned graph runs. A graph that Keras traced for other batches gets the
  devices of the plan, too. A graph that cannot follow the plan is placed like
  any other graph.

  Args:
    source: The graph with the devices TensorFlow gave it.
    settings: The user's option.
    plan: Plan of the same step before its variables moved.
    function: TensorFlow's name of the step.

  Raises:
    GdpError: the settings do not fit the graph or the machine.
  """
  nodes = source.graph_def.node
  if plan.graph and plan.function == function and all(
      plan.devices.get(node.name) == node.device
      for node in nodes if _is_resource(node)):
    return outcome_lib.Outcome(plan.outcome.devices, '',
                               plan.outcome.control_edges, graph=plan.graph)
  known = [plan.devices.get(node.name, '') for node in nodes]
  if known.count('') > _LARGEST_UNKNOWN_SHARE * len(nodes):
    return decisions.optimize(source, settings)
  cluster = task_links.of(settings, source.devices)
  may_round = settings.may_round or planned.may_round(settings.plan)
  graph = step_lib.of_source(source, cluster, live=True,
                             may_round=may_round).graph
  devices = _by_group(graph.groups, known, graph.devices)
  placement = placement_lib.Placement(
      np.array([cluster.device_index(d) for d in devices]), cluster)
  if placement.violations(graph):
    return decisions.optimize(source, settings)
  edges = plan.outcome.control_edges if _same_nodes(nodes, plan) else ()
  return outcome_lib.Outcome(tuple(placement.device_strings()), '', edges)


def _is_resource(node: Any) -> bool:
  """Whether a node is a resource argument: a variable or an iterator."""
  return node.op == '_Arg' and node.attr['T'].type == types_pb2.DT_RESOURCE


def _same_nodes(nodes: Sequence[Any], plan: FitPlan) -> bool:
  """Whether the nodes have the names and the order of the planned nodes."""
  return [node.name for node in nodes] == list(plan.devices)


def _by_group(groups: np.ndarray, known: Sequence[str],
              otherwise: Sequence[str]) -> list[str]:
  """Returns the device of each op, [N]: the commonest one of its group.

  Args:
    groups: int [N], group of each op.
    known: [N], known devices; '' if unknown.
    otherwise: [N], devices for groups without a known device.
  """
  votes: dict[int, dict[str, int]] = {}
  for group, device in zip(groups.tolist(), known):
    if device:
      count = votes.setdefault(group, {})
      count[device] = count.get(device, 0) + 1
  best = {
      group: max(count, key=count.__getitem__) for group, count in votes.items()
  }
  return [best.get(g, d) for g, d in zip(groups.tolist(), otherwise)]
