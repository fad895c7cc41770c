"""Decides on the devices of one graph, without the Grappler pass.

The steps are: read the graph, place it, check the placements, price them (with
control edges if an order is wanted), keep the best. No state outside changes.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import shortage
from gdp_grappler.evaluation.costs import profiled_costs
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import asked
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.plans import misfits
from gdp_grappler.placers.plans import planned
from gdp_grappler.placers.search.edges import edge_selection
from gdp_grappler.plugin import asked_devices
from gdp_grappler.plugin import devices as devices_lib
from gdp_grappler.plugin import gpu_reports
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import placement_before
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import step_costs
from gdp_grappler.plugin import task_links
from gdp_grappler.reports import units

# TensorFlow's name for the graph that creates the variables of a function. The
# graph runs once, and plans are for other graphs, so the user gets no line.
_MAKES_VARIABLES = 'initialize_variables'

# A graph may set a v1 variable for the first time, and read the variable in a
# branch whose condition tests it. Without an edge between write and read, the
# graph fails if the read comes first, which a placement can cause.
_TESTS_VARIABLE, _SETS_VARIABLE = 'IsVariableInitialized', 'Assign'
_BRANCHES = frozenset(('If', 'RefSwitch', 'StatelessIf', 'Switch'))

# Bytes from which a constant may be a weight of a frozen graph.
_WEIGHT_BYTES = 1024

# Limits of the search for an order that the user has not requested: the gain
# must be large, and the search short. Only asynchronous devices get such an
# order. On other devices, measured steps with control edges were longer,
# although a gain was predicted.
_UNASKED = control_edges.OrderConfig(min_gain=.05, max_simulated_ops=500_000)
# Shares of a graph's time budget. The first one is for the search for devices,
# which needs only a part of this time unless the machine is busy. The second
# one is a reserve for work that cannot be stopped. The search for an order has
# the rest.
_SEARCH_SHARE = _KEPT_SHARE = 1 / 3


def optimize(source: source_graph.SourceGraph, settings: settings_lib.Settings,
             *, relocatable: bool = False) -> outcome_lib.Outcome:
  """Decides on the devices of a graph that is about to run.

  Args:
    source: The graph, with the devices that TensorFlow chose; not one of a
      distribution strategy, which the caller leaves alone (`strategies`).
    settings: The user's option.
    relocatable: Whether variables that a function receives as arguments may
      move, with their readers, updates and optimizer slots. The caller then
      has to move each variable to its device in the outcome.

  Raises:
    GdpError: the settings do not fit the graph or the machine.
  """
  is_first = source.name == _MAKES_VARIABLES and settings.plan is not None
  if is_first or devices_lib.why_no_choice(source.devices, settings):
    return outcome_lib.Outcome(None, '')  # One line per program reports this.
  deadline = deadlines.without_loading(
      (1 - _KEPT_SHARE) * settings.time_budget_s)
  notes: list[str] = []
  step = _step(source, settings, relocatable, notes)
  if why := _why_to_leave_alone(step):
    return _leave_alone(source, why)
  graph, simulator = step.graph, step.simulator()
  problem = dataclasses.replace(
      _timed(step.problem(simulator, settings.seed), settings, deadline),
      simulator=simulator, may_add_edges=settings.order != order_names.FIFO)
  before = placement_before.placement(problem, source)
  orders = functools.partial(_order_config, graph, before, settings, deadline)
  must_change = bool(before.violations(graph))  # It breaks a pin of the user.
  if (not must_change and (problem.allowed.sum(axis=1) == 1).all() and
      not placement_before.num_rejoined(graph, before)):
    order = edge_selection.order_of(problem, before, simulator, orders)
    choice = edge_selection.SelectedPlacement(before, order)
    return (_outcome(problem, before, choice, simulator, settings)
            if order else _of_no_choice(source))
  stays = settings.keep_best and settings.plan is None and not must_change
  proposals: tuple[placement_lib.Placement, ...] = ()
  origin = settings.placer
  try:
    if not (stays and _stays_on_one(before, problem, settings)):
      proposals, origin = _proposals(problem, settings)
  except misfits.DoesNotFitError as error:
    if not must_change:
      return _of_misfit(source, graph, error)
    proposals, origin = (placement_before.legal(problem, before),), 'pins'
    notes.append(f'{error}, so only pinned ops move')
  choice = edge_selection.best(problem,
                               (before, *proposals) if stays else proposals,
                               simulator, orders)
  outcome = _outcome(problem, before, choice, simulator, settings, origin)
  notes.append(_kept_requests(source))
  if settings.batch_size is None and source.leaves_sizes_open():
    notes.append(f'batches of {assumptions.DEFAULT_BATCH_SIZE} are assumed; '
                 "'batch_size' sets their size")
  return _with_note(outcome,
                    '; '.join(line.rstrip('.') for line in notes if line))


def _timed(problem: placer_lib.Problem, settings: settings_lib.Settings,
           deadline: deadlines.Deadline) -> placer_lib.Problem:
  """Returns the problem with the time budget and the clock of the search.

  A number of prices ends every search. So equal graphs mostly get equal
  placements. On a slow machine the clock ends the search earlier, unless the
  user sets the key `repeatable`: then the clock stands still.
  """
  budget_s = _SEARCH_SHARE * settings.time_budget_s
  if settings.repeatable:
    return dataclasses.replace(problem, time_budget_s=budget_s, repeatable=True,
                               clock=deadlines.still)
  return dataclasses.replace(problem, repeatable=True,
                             time_budget_s=min(budget_s, deadline.remaining_s))


def _with_note(outcome: outcome_lib.Outcome, more: str) -> outcome_lib.Outcome:
  """Appends `more` to the message of an outcome, unless either is ''."""
  if not more or not outcome.message:
    return outcome
  return dataclasses.replace(outcome, message=f'{outcome.message}; {more}')


def _kept_requests(source: source_graph.SourceGraph) -> str:
  """Returns text on the ops that tf.device keeps in place; '' for none.

  Keras creates slots of optimizers on the devices of their variables, without a
  `tf.device` of the user. So requests of that graph do not count.
  """
  if source.name == _MAKES_VARIABLES:
    return ''
  variables, ops = asked.count(source)
  if not variables and not ops:
    return ''
  what = [
      units.count(number, kind)
      for number, kind in ((variables, 'variable'), (ops, 'op')) if number
  ]
  one = variables + ops == 1
  return (f'{" and ".join(what)} stay{"s" * one} where '
          f'{asked_devices.request_source()} put '
          f"{'it' if one else 'them'} ('pins')")


def _of_no_choice(source: source_graph.SourceGraph) -> outcome_lib.Outcome:
  """Leaves a graph without movable ops. A line counts ops under tf.device."""
  said = _kept_requests(source)
  if not said:
    return outcome_lib.Outcome(None, '')
  return _leave_alone(source, f'no op may move; {said}')


def _stays_on_one(before: placement_lib.Placement, problem: placer_lib.Problem,
                  settings: settings_lib.Settings) -> bool:
  """Whether movable ops are on one device and fit, and spreading never pays."""
  free = (problem.allowed.sum(axis=1) > 1)[problem.graph.groups]
  return (devices_lib.never_pay(problem.cluster, settings) and
          len(np.unique(before.devices[free])) == 1 and bool(
              problem.evaluator.price(problem.graph,
                                      before.devices[None]).valid[0]))


def _step(source: source_graph.SourceGraph, settings: settings_lib.Settings,
          relocatable: bool, notes: list[str]) -> step_lib.Step:
  """Returns the step of a graph; adds a line to `notes` per assumption."""
  # Variables move only in `fit`.
  called = step_costs.of_fit if relocatable else step_costs.of_function
  cluster = called(_cluster(source, settings))
  source, live = gpu_reports.prepared(source, cluster, notes.append)
  step = step_lib.of_source(
      source, cluster, live=live, relocatable=relocatable,
      batch_size=settings.batch_size or assumptions.DEFAULT_BATCH_SIZE,
      trip_count=settings.trip_count or assumptions.DEFAULT_TRIP_COUNT,
      tell=notes.append, may_round=settings.may_round or
      planned.may_round(settings.plan))
  if settings.profile is None:
    return step
  return dataclasses.replace(
      step, cost_model=profiled_costs.from_file(settings.profile, step.graph))


def _why_to_leave_alone(step: step_lib.Step) -> str | None:
  graph = step.graph
  sources, targets = graph.edges.T
  tested, is_set = (sources[graph.where_type(op_type.__eq__)[targets]]
                    for op_type in (_TESTS_VARIABLE, _SETS_VARIABLE))
  # Types such as RefSwitch, which pass on any variable.
  unknown = graph.where_type(lambda op_type: op_type.startswith('Ref'))
  if (graph.where_type(_BRANCHES.__contains__).any() and tested.size and
      (np.isin(is_set, tested) | unknown[is_set]).any()):
    return (f'it has branches, and may set a variable that {_TESTS_VARIABLE} '
            'tests, so the result depends on the order of ops, which a '
            'placement could change')
  return shortage.why_none_fits(graph, step.cluster)


def _leave_alone(source: source_graph.SourceGraph,
                 why: str) -> outcome_lib.Outcome:
  """Leaves a graph as it was, and says why unless it creates variables."""
  said = f'{source.name}: left as it was: {why}'
  return outcome_lib.Outcome(None,
                             '' if source.name == _MAKES_VARIABLES else said)


def _of_misfit(source: source_graph.SourceGraph, graph: op_graph.OpGraph,
               error: misfits.DoesNotFitError) -> outcome_lib.Outcome:
  """Leaves a graph as it was, because the plan is for another graph.

  A graph without weights may lack layers: only a misspelt name is reported.
  """
  if not isinstance(error, misfits.NoLayerError):
    return _leave_alone(source, str(error))
  if not (error.is_near or _has_weights(graph)):
    return outcome_lib.Outcome(None, '')
  return dataclasses.replace(_leave_alone(source, str(error)), topic=str(error))


def _has_weights(graph: op_graph.OpGraph) -> bool:
  """Whether a graph has variables, or constants as large as weights."""
  large = graph.output_bytes >= _WEIGHT_BYTES
  constants = graph.where_type('Const'.__eq__)
  return bool(graph.holds_variables.any() or (constants & large).any())


def _cluster(source: source_graph.SourceGraph,
             settings: settings_lib.Settings) -> cluster_lib.Cluster:
  cluster = task_links.of(settings, source.devices)
  if settings.mode == 'apply':
    here = {cluster_lib.canonical_device(d) for d in source.devices}
    absent = [
        label for label, device in zip(cluster.device_labels, cluster.devices)
        if device.name not in here
    ]
    if absent:
      raise errors.ClusterError(
          f'Cluster "{cluster.name}" has {", ".join(absent)}, which this '
          "process lacks. Use {'mode': 'report'} to see what it would give, "
          "or 'cluster': 'local'.")
  return cluster


def _proposals(
    problem: placer_lib.Problem, settings: settings_lib.Settings
) -> tuple[tuple[placement_lib.Placement, ...], str]:
  """Returns legal placements, and the name of their plan or placer.

  Raises:
    DoesNotFitError: the plan is for other graphs.
    InfeasiblePlacementError: a placement breaks a rule.
  """
  proposals: tuple[placement_lib.Placement, ...]
  if settings.plan is not None:
    found = planned.place(settings.plan, problem)
    proposals, origin = (found.placement,), found.origin
  else:
    proposals = best_of.proposals_of(
        registry.create(settings.placer, settings.policy), problem)
    origin = settings.placer
  for placement in proposals:
    violations = placement.violations(problem.graph)
    if violations:
      raise errors.InfeasiblePlacementError(
          f'The placement by {origin} broke a rule of {problem.graph.name}: '
          f'{violations[0].message}. Report this, and use another placer.')
  return proposals, origin


def _outcome(problem: placer_lib.Problem, before: placement_lib.Placement,
             choice: edge_selection.SelectedPlacement,
             simulator: simulator_lib.Simulator,
             settings: settings_lib.Settings,
             origin: str = '') -> outcome_lib.Outcome:
  """Returns the outcome of a choice; `origin` names its placer or plan."""
  graph, after = problem.graph, choice.placement
  prices = simulator.price(graph, np.stack([before.devices, after.devices]))
  old_s, new_s = prices.seconds.tolist()
  old = f'{_ms(old_s)} (as it was) -> ' if np.isfinite(old_s) else ''
  predicted = f'predicted step {old}{_ms(new_s)} ms (simulated)'
  apply = settings.mode == 'apply'
  home = placement_before.num_rejoined(graph, before)
  said = ''
  if after is not before:
    tensors, size = after.cut(graph)
    counts = ', '.join(f'{d} {n}' for d, n in after.counts().items())
    said = (f'{"placed" if apply else "would be placed"} by {origin}: '
            f'{counts}; cut {units.count(tensors, "tensor")}, '
            f'{size / 1e6:.2f} MB; {predicted}')
    if prices.overflow_bytes[0] and not prices.overflow_bytes[1]:
      said += '; as it was, it would have exceeded a memory'
    if not old:
      said += '; as it was, an op was not on the device of its pin'
    rounded = constraints.changes_numbers(graph, after.cluster,
                                          after.devices).sum()
    if rounded:
      said += f'; {units.count(int(rounded), "op")} will round differently'
    if (not settings.keep_best and origin == settings.placer and
        registry.get(origin).kind is not placer_table.Kind.CONSTRUCTS):
      said += _why_on_one(problem, after, origin)
  elif home:
    said = (f'{"stay" if apply else "would stay"} where they were, except '
            f'{home} ops of loops, which go to the device of the variables of '
            f'their loop; {predicted}')
  elif (problem.allowed.sum(axis=1) > 1).any():
    said = f'left as they were: {origin} gives no gain; {predicted}'
  if said and prices.overflow_bytes[1]:
    was, now = prices.overflow_bytes.tolist()
    exceeds = shortage.if_used_anyway(graph, after.cluster,
                                      prices.peak_bytes[1], less=now < was)
    said += f'; {exceeds}'
  elif said and (full := shortage.nearly_full(after.cluster,
                                              prices.peak_bytes[1].tolist())):
    said += f'; {full}'
  order = choice.order
  edges: tuple[tuple[int, int], ...] = ()
  if order is not None:
    new_s = order.with_edges_s
    edges = tuple(map(tuple, order.control_edges.tolist()))
    said += (
        f'{"; " * bool(said)}{"ordered" if apply else "would be ordered"}: '
        f'{len(edges)} control edges, {_ms(order.with_edges_s)} ms for '
        f'{_ms(order.fifo_s)} (simulated)')
  changes = apply and (after is not before or order is not None or home > 0)
  message = f'{graph.name}: {graph.num_ops} ops {said}' if said else ''
  return outcome_lib.Outcome(
      tuple(after.device_strings()) if changes else None, message,
      edges if apply else (), old_s, new_s, fitted=not prices.overflow_bytes[0])


def _why_on_one(problem: placer_lib.Problem, placement: placement_lib.Placement,
                origin: str) -> str:
  """Returns text why a placer put all on one device; '' if it did not."""
  # Only groups with two or more legal devices reflect the placer's choice.
  free = (problem.allowed.sum(axis=1) > 1)[problem.graph.groups]
  used = set(placement.devices[free].tolist())
  if len(used) != 1:
    return ''
  cluster = placement.cluster
  where = cluster.device_labels[used.pop()]
  why = ''
  if len(set(cluster.compute_units.tolist())) == 1:
    why = ', because devices of one CPU share its cores and copies take time'
  return (f'; all ops that may move are on {where}: no other placement by '
          f"{origin} is predicted to be faster{why} (a 'plan' or 'placer': "
          "'round_robin' spreads the ops in any case)")


def _order_config(
    graph: op_graph.OpGraph, before: placement_lib.Placement,
    settings: settings_lib.Settings, deadline: deadlines.Deadline,
    placement: placement_lib.Placement) -> control_edges.OrderConfig | None:
  """Returns how to look for control edges; None if there are to be none."""
  max_s = math.inf if settings.repeatable else deadline.remaining_s
  if not max_s:
    return None
  if placement is before and not (set(graph.devices) <= set(
      placement.cluster.device_names)):
    return None  # The cluster lacks a device of some ops.
  if (settings.order == order_names.CRITICAL_PATH or
      settings.order is None and placement.priorities is not None):
    return control_edges.OrderConfig(max_s=max_s)
  used = np.unique(placement.devices)
  runs_ahead = sum(placement.cluster.devices[d].asynchronous for d in used)
  if settings.order == order_names.FIFO or runs_ahead < 2:
    return None
  return dataclasses.replace(_UNASKED, max_s=max_s)


def _ms(seconds: float) -> str:
  return units.digits(seconds * 1e3)
