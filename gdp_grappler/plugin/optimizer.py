"""The journey of one graph through the pass, without any plugin.

read -> place -> check -> price -> keep the better one -> order. Pure: the same
graph and settings give the same outcome, and nothing outside is touched.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import order as order_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import planned
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.plugin import settings as settings_lib

# Replicas of one model already fill the devices, and their collectives wait
# for each other: moving an op of one would stop all.
_REPLICA_NAME = re.compile(r'(^|/)replica_\d+/')
_REPLICA_OP = re.compile(r'Collective.*|.*Nccl.*|TPU.*')

# Each worker of these runs its own steps, between variables that all share.
_PARAMETER_SERVER = '/job:ps/'

# Where nobody asked for an order, it has to pay well and be found soon. Where
# devices wait for their ops, predicted gains have been seen to be losses.
_UNASKED = control_edges.OrderConfig(min_gain=.05, max_simulated_ops=500_000)


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What to do with a graph.

  Attributes:
    devices: [N] device of each node of the GraphDef; None to leave it alone.
    message: One line for the user; '' for nothing worth saying.
    control_edges: Nodes (first, then) that are to keep this order.
  """

  devices: tuple[str, ...] | None
  message: str
  control_edges: tuple[tuple[int, int], ...] = ()


def optimize(source: source_graph.SourceGraph, settings: settings_lib.Settings,
             *, relocatable: bool = False) -> Outcome:
  """Decides on the devices of a graph that is about to run.

  Args:
    source: The graph with the devices TensorFlow gave it.
    settings: The user's option.
    relocatable: Variables that a function receives as arguments may move, with
      their readers, updates and optimizer slots; the devices of the outcome
      say where the caller has to bring each.

  Raises:
    GdpError: the settings do not fit the graph or the machine.
  """
  reason = _why_not(source)
  if reason:
    return Outcome(None, f'{source.name}: left as it was: {reason}')
  cluster = _cluster(source, settings)
  step = step_lib.of_source(source, cluster, live=True, relocatable=relocatable)
  graph, simulator = step.graph, step.simulator()
  problem = step.problem(simulator, settings.seed)
  before = _as_it_was(graph, cluster)
  if ((problem.allowed.sum(axis=1) == 1).all() and
      not before.violations(graph)):
    return _ordered(Outcome(None, ''), graph, before, simulator, settings)
  try:
    after, origin = _after(problem, settings)
  except planned.DoesNotFitError as error:
    return Outcome(None, f'{source.name}: left as it was: {error}')
  violations = after.violations(graph)
  if violations:
    raise errors.InfeasiblePlacementError(
        f'The placement by {origin} broke a rule of {source.name}: '
        f'{violations[0].message}. Report this, and use another placer.')
  outcome, chosen = _decide(graph, before, after, origin, simulator, settings)
  return _ordered(outcome, graph, chosen, simulator, settings)


def _why_not(source: source_graph.SourceGraph) -> str:
  """Why a graph must not be touched; '' if nothing speaks against it."""
  for node in source.graph_def.node:
    if _REPLICA_OP.fullmatch(node.op) or _REPLICA_NAME.search(node.name):
      return ('it holds replicas of a distribution strategy '
              f'("{node.name}"). Switch gdp_placement off, or train without '
              'the strategy')
  server = next((d for d in source.devices if _PARAMETER_SERVER in d), '')
  if server:
    return (f'its variables are on parameter servers ("{server}"). Switch '
            'gdp_placement off, or train without the strategy')
  return ''


def _cluster(source: source_graph.SourceGraph,
             settings: settings_lib.Settings) -> cluster_lib.Cluster:
  cluster = resolve.resolve(settings.cluster or 'local', source.devices)
  if settings.mode == 'apply':
    here = {cluster_lib.canonical_device(d) for d in source.devices}
    absent = [d.short_name for d in cluster.devices if d.name not in here]
    if absent:
      raise errors.ClusterError(
          f'Cluster "{cluster.name}" has {", ".join(absent)}, which this '
          "process lacks. Use {'mode': 'report'} to see what it would give, "
          "or 'cluster': 'local'.")
  return cluster


def _as_it_was(graph: op_graph.OpGraph,
               cluster: cluster_lib.Cluster) -> placement_lib.Placement:
  """The placement TensorFlow chose; on the host where the cluster has none."""
  index = {}
  for name in set(graph.devices):
    try:
      index[name] = cluster.device_index(name)
    except errors.ClusterError:
      index[name] = cluster.host
  return placement_lib.Placement(
      np.array([index[name] for name in graph.devices]), cluster)


def _after(
    problem: placer_lib.Problem,
    settings: settings_lib.Settings) -> tuple[placement_lib.Placement, str]:
  """The placement that is asked for, and whose it is."""
  if settings.plan is not None:
    found = planned.place(settings.plan, problem)
    return found.placement, found.origin
  placer = registry.create(settings.placer, settings.policy)
  return placer.place(problem), settings.placer


def _decide(
    graph: op_graph.OpGraph, before: placement_lib.Placement,
    after: placement_lib.Placement, origin: str,
    evaluator: evaluator_lib.Evaluator,
    settings: settings_lib.Settings) -> tuple[Outcome, placement_lib.Placement]:
  """Keeps the better one; a graph that breaks a user's pin has to change."""
  prices = evaluator.price(graph, np.stack([before.devices, after.devices]))
  old_s, new_s = prices.seconds.tolist()
  predicted = f'predicted step {_ms(old_s)} -> {_ms(new_s)} ms (simulated)'
  worth = prices.valid[1] and new_s < old_s
  must = bool(before.violations(graph))
  asked = settings.plan is not None or not settings.keep_best
  if not asked and not worth and not must:
    message = (f'{graph.name}: {graph.num_ops} ops left as they were: '
               f'{origin} gives no gain; {predicted}')
    return Outcome(None, message), before
  tensors, size = after.cut(graph)
  counts = ', '.join(f'{d} {n}' for d, n in after.counts().items())
  what = 'placed' if settings.mode == 'apply' else 'would be placed'
  message = (f'{graph.name}: {graph.num_ops} ops {what} by '
             f'{origin}: {counts}; cut {tensors} tensors, '
             f'{size / 1e6:.2f} MB; {predicted}')
  devices = tuple(after.device_strings())
  return Outcome(devices if settings.mode == 'apply' else None, message), after


def _ordered(outcome: Outcome, graph: op_graph.OpGraph,
             placement: placement_lib.Placement,
             simulator: simulator_lib.Simulator,
             settings: settings_lib.Settings) -> Outcome:
  """The outcome with control edges, if they are wanted and predicted to pay."""
  devices = outcome.devices or graph.devices
  config = _order_config(placement, settings)
  if (config is None or
      not set(devices) <= set(placement.cluster.device_names)):
    return outcome
  order = control_edges.control_edges(graph, placement, simulator, config)
  if not len(order.control_edges):
    return outcome
  apply = settings.mode == 'apply'
  said = (f'{"ordered" if apply else "would be ordered"}: '
          f'{len(order.control_edges)} control edges, '
          f'{_ms(order.with_edges_s)} ms for {_ms(order.fifo_s)} (simulated)')
  message = outcome.message or f'{graph.name}: {graph.num_ops} ops'
  return Outcome(
      devices if apply else None, f'{message}; {said}',
      tuple(map(tuple, order.control_edges.tolist())) if apply else ())


def _order_config(
    placement: placement_lib.Placement,
    settings: settings_lib.Settings) -> control_edges.OrderConfig | None:
  """When to add control edges; None for never."""
  if (settings.order == order_lib.CRITICAL_PATH or
      settings.order is None and placement.priorities is not None):
    return control_edges.OrderConfig()
  used = np.unique(placement.devices)
  runs_ahead = sum(placement.cluster.devices[d].asynchronous for d in used)
  if settings.order == order_lib.FIFO or runs_ahead < 2:
    return None
  return _UNASKED


def _ms(seconds: float) -> str:
  if not np.isfinite(seconds):
    return '(against a pin)'
  milliseconds = seconds * 1e3
  return f'{milliseconds:.0f}' if milliseconds >= 100 else f'{milliseconds:.3g}'
