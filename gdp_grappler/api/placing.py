"""Places steps, and reads and prices plans for steps."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any, Mapping, Sequence

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler import spelling
from gdp_grappler.api import arguments
from gdp_grappler.api import placed_step
from gdp_grappler.api import refusing
from gdp_grappler.api import subjects
from gdp_grappler.api import telling
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import layer_devices
from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import max_memory as max_memory_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.cluster import whole_graph as whole_graph_lib
from gdp_grappler.evaluation import price as price_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.legality import reasons as reasons_lib
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.plans import misfits
from gdp_grappler.placers.plans import planned
from gdp_grappler.placers.policy import named_policy
from gdp_grappler.placers.search.edges import edge_selection
from gdp_grappler.sharding import choice

Shapes = Mapping[str, Sequence[int]]
Tables = str | Mapping[str, int]
Plan = str | os.PathLike[str] | Mapping[str, str]

# Seconds of reading above which a user with a time budget gets a line, because
# the budget is only for the search.
_QUICK_S = 5.
# Share of the remaining time for the search. The rest is for pricing, ordering
# and writing.
_SEARCH_SHARE = .9


def place(graph: Any, cluster: str | cluster_lib.Cluster, *,
          placer: str = registry.DEFAULT, policy: str | None = None,
          plan: Plan | None = None, order: str | None = None, seed: int = 0,
          time_budget_s: float | None = None,
          batch_size: int = assumptions.DEFAULT_BATCH_SIZE,
          trip_count: int = assumptions.DEFAULT_TRIP_COUNT, profile: str = '',
          signature: Sequence[Any] | None = None, whole_graph: bool = False,
          may_round: bool = False, repeatable: bool = False,
          shape: Shapes | None = None, pins: str = assumptions.PINS_KEPT,
          data: Any = None, split_tables: Tables = choice.AUTO, max_memory: str
          | Mapping[str, Any] | None = None, verbose: bool | str = telling.AUTO,
          tell: telling.Tell | None = None) -> placed_step.PlacedStep:
  """Decides on the device of every op of a step.

    gdp_grappler.place(model, '2xP100').save('plan.json')

  Args:
    graph: A Keras model (the training step if it is compiled, else the forward
      pass), a Python function that makes a model (the weights get no memory), a
      `tf.function`, a `tf.Graph`, or a text as for `gdp place`: a file or
      folder, module:function, keras_applications:NAME or a workload's name.
    cluster: A preset such as '2xP100', 'local', a file, or a `Cluster`.
    placer: Name of a placer; see `gdp place --help`.
    policy: Folder of a trained network, for a placer that uses one.
    plan: Replaces the placer: a file, or devices by layer, {'words': 'CPU:0'}.
    order: 'critical_path' adds an order if that pays; 'fifo' drops the plan's.
    seed: Seed of the placer's random numbers.
    time_budget_s: Time limit of the search; None for the placer's own limit.
    batch_size: Size of the dimensions that the graph leaves open.
    trip_count: Iterations of while loops whose number the graph does not state.
    profile: File of `gdp profile`; '' for the roofline.
    whole_graph: Whether ops that no step runs restrict devices, too.
    may_round: Whether float arithmetic may go where it rounds differently.
    pins: 'keep' or 'ignore' the devices that the graph requests by `tf.device`.
    repeatable: Whether the budget stands for a number of prices, not a time.
    shape: Shapes of a SavedModel's inputs of open shape, {'x': (32, 8)}.
    signature: Arguments of a `tf.function`, or a SavedModel's signature name.
    data: One batch as for `fit`, if the model does not know its inputs.
    split_tables: Tables in parts, of a file or function: 'auto' for those that
      no device can hold, 'off', or layers, as {'words': 4}.
    max_memory: Limits of memories, in bytes or such as {'GPU:0': '12GB'}.
    verbose: Whether to show progress and assumptions; see `telling.listener`.
    tell: Gets each line about assumptions, in place of standard error.

  Raises:
    InvalidGraphError: the graph is missing or cannot be used.
    InfeasiblePlacementError: the graph does not fit, or a plan breaks a rule.
    GdpError: a name is unknown, or a file cannot be used.
  """
  arguments.check_search(seed, time_budget_s, repeatable, whole_graph)
  layers = _check_choice(placer, policy, plan, order, profile)
  with telling.listener(tell, verbose) as heard:
    how = subjects.Reading(batch_size, trip_count, profile, signature, heard,
                           may_round, pins, data, split_tables,
                           max_memory_lib.read(max_memory), shape, layers)
    subject, deadline = _read(graph, cluster, how, time_budget_s, repeatable)
    if plan is not None:
      return _planned(subject, plan, order, deadline, whole_graph)
    step = _with_whole(subject) if whole_graph else subject.step
    return _checked(step, subject, placer, policy, order, seed, deadline)


def _read(graph: Any, cluster: str | cluster_lib.Cluster, how: subjects.Reading,
          time_budget_s: float | None,
          repeatable: bool) -> tuple[subjects.Subject, deadlines.Deadline]:
  """Returns the step and the deadline. The budget does not include reading."""
  begin_s = time.monotonic()
  subject = subjects.read(graph, cluster, how)
  took_s = time.monotonic() - begin_s
  if time_budget_s is not None and took_s > _QUICK_S:
    how.tell(f'Reading took {took_s:.0f} s. The time budget is for the search '
             'alone.')
  clock = deadlines.still if repeatable else time.monotonic
  return subject, deadlines.within(time_budget_s, clock)


def _checked(step: step_lib.Step, subject: subjects.Subject, placer: str,
             policy: str | None, order: str | None, seed: int,
             deadline: deadlines.Deadline) -> placed_step.PlacedStep:
  """Places by a placer; raises an error if the placement does not fit."""
  refusing.if_certain(subject, step)
  found = by_placer(subject, step, placer, policy, order, seed, deadline)
  refusing.if_it_exceeds(subject, found)
  return found


def _with_whole(subject: subjects.Subject) -> step_lib.Step:
  """Returns the step with the rules of ops that no step runs as well."""
  step = subject.step
  return dataclasses.replace(
      step, graph=whole_graph_lib.with_rules(step.graph,
                                             subject.whole().graph))


def by_placer(
    subject: subjects.Subject, step: step_lib.Step, placer: str,
    policy: str | None = None, order: str | None = None, seed: int = 0,
    deadline: deadlines.Deadline = deadlines.NEVER) -> placed_step.PlacedStep:
  """Places a step that has been read.

  Arguments and errors are those of `place`, except for `deadline`: the moment
  until which the search and the order have to be done.
  """
  if deadline.passed:
    subject.how.tell(
        'The time budget was over before the search began; searches take '
        'their first placement.')
  progress.doing(f'placing {step.graph.num_ops} ops by {placer}')
  simulator, ordered = step.simulator(), order == order_names.CRITICAL_PATH
  problem = dataclasses.replace(step.problem(seed=seed),
                                time_budget_s=_search_s(placer, deadline),
                                clock=deadline.clock, simulator=simulator,
                                may_add_edges=ordered)
  found = best_of.proposals_of(registry.create(placer, policy), problem)
  progress.doing('pricing what was found')
  choice = edge_selection.best(
      problem, found, simulator, lambda _: _order_config(deadline)
      if ordered else None)
  placement = (choice.with_order if choice.order is not None else
               dataclasses.replace(choice.placement, priorities=None))
  refuse_illegal(placement, step.graph, f'The placement by {placer}',
                 spelling.with_end('Report this, and use another placer.'))
  return _ordered(placed_step.PlacedStep(subject, step, placement, placer),
                  order, deadline)


def _search_s(placer: str, deadline: deadlines.Deadline) -> float | None:
  """Returns the seconds of a search; None for the placer's own limit."""
  learns = registry.get(placer).kind == placer_table.Kind.LEARNS
  if learns and deadline.clock is deadlines.still:
    return None  # The number of its rounds limits this placer.
  return deadline.after(_SEARCH_SHARE).left_s


def load_plan(plan: Plan, graph: Any,
              cluster: str | cluster_lib.Cluster | None = None, *,
              batch_size: int = assumptions.DEFAULT_BATCH_SIZE,
              trip_count: int = assumptions.DEFAULT_TRIP_COUNT,
              profile: str = '', signature: Sequence[Any] | None = None,
              shape: Shapes | None = None, may_round: bool = False,
              data: Any = None, split_tables: Tables = choice.AUTO,
              verbose: bool | str = telling.AUTO,
              tell: telling.Tell | None = None) -> placed_step.PlacedStep:
  """Reads a plan file of `PlacedStep.save` or of an editor.

    gdp_grappler.load_plan('plan.json', model).step_time_s

  Args:
    plan: A plan file, or devices by layer, which need a cluster.
    graph: The graph that the plan was made for; see `place`.
    cluster: The cluster on which to run; by default that of the plan.
    batch_size: See `place`.
    trip_count: See `place`.
    profile: See `place`.
    signature: See `place`.
    shape: See `place`.
    may_round: See `place`.
    data: See `place`.
    split_tables: See `place`.
    verbose: See `place`.
    tell: See `place`.

  Raises:
    PlanError: the file is missing or damaged, or for another graph.
    InfeasiblePlacementError: the plan breaks a rule of the graph.
    GdpError: a name is unknown, or a file cannot be used.
  """
  arguments.check_plan(plan)
  if cluster is None:
    cluster = arguments.cluster_of(plan)
  with telling.listener(tell, verbose) as heard:
    subject = subjects.read(
        graph, cluster,
        subjects.Reading(batch_size, trip_count, profile, signature, heard,
                         may_round, data=data, split_tables=split_tables,
                         shape=shape, layers=layer_devices.layers(plan)))
    return of_plan(subject, plan)


def simulate(graph: Any, plan: Plan,
             cluster: str | cluster_lib.Cluster | None = None, *,
             order: str | None = None, **reading: Any) -> price_lib.Price:
  """Prices a plan in both orders.

    gdp_grappler.simulate('graph.pb', 'plan.json').fifo_s

  Args:
    graph: The graph that the plan was made for; see `place`.
    plan: A plan file, or devices by layer, which need a cluster.
    cluster: The cluster on which to run; by default that of the plan.
    order: Order of the memory and the schedule in the result, 'fifo' or
      'critical_path'; by default that of the plan.
    **reading: Further arguments of `load_plan`.

  Raises:
    GdpError: the plan cannot be used (see `load_plan`), or there is no such
      order.
  """
  arguments.check_order(order)
  return load_plan(plan, graph, cluster, **reading).price(order)


def of_plan(subject: subjects.Subject, plan: Plan) -> placed_step.PlacedStep:
  """Returns a step placed by a plan; for errors see `load_plan`."""
  return _planned(subject, plan, None)


def refuse_illegal(placement: placement_lib.Placement, graph: op_graph.OpGraph,
                   origin: str, remedy: str) -> None:
  """Raises an error unless the placement keeps the graph's rules.

  Args:
    placement: A placement of the graph.
    graph: The graph.
    origin: Name of the placement in the message.
    remedy: Last sentence of the message, such as advice for the user.

  Raises:
    InfeasiblePlacementError: the placement breaks a rule.
  """
  violations = placement.violations(graph)
  if violations:
    count = len(violations)
    raise errors.InfeasiblePlacementError(
        f'{origin} breaks {count} rule{"s" * (count > 1)} of graph '
        f'"{graph.name}", such as: {violations[0].message}. {remedy}')


def _check_choice(placer: str, policy: str | None, plan: Plan | None,
                  order: str | None, profile: str = '') -> plan_lib.Layers:
  """Returns the plan's map of layers; raises errors before the work begins."""
  arguments.check_names(placer=placer, policy=policy, profile=profile)
  if plan is not None:
    if policy is not None or placer != registry.DEFAULT:
      raise errors.GdpError('A plan takes the place of a placer and its '
                            'policy. Give one of them.')
    arguments.check_plan(plan)
  arguments.check_order(order)
  arguments.check_policy(placer, policy)
  registry.factory(placer, policy)  # Some must import before TensorFlow.
  if plan is None and placer_table.Need.POLICY in registry.get(placer).needs:
    named_policy.read(policy)
  return layer_devices.layers(plan)


def _planned(subject: subjects.Subject, plan: Plan, order: str | None,
             deadline: deadlines.Deadline = deadlines.NEVER,
             whole_graph: bool = False) -> placed_step.PlacedStep:
  known = (layer_map.checked(plan)
           if isinstance(plan, Mapping) else planned.of_file(os.fspath(plan)))
  asked = subject.step.graph.may_round
  if planned.may_round(known) and not asked:
    subject = subject.with_rounding_allowed()
  if _ignores_pins(subject, known):
    subject = subject.without_asked()
  step = _with_whole(subject) if whole_graph else subject.step
  if isinstance(known, str):
    name, placement = known, plan_lib.load(known, step.graph, step.cluster)
    written = plan_lib.read(known)
    chosen_by = written.placed_by
    # The names of layers may be those of another trace of the model.
    layers = (written.layers
              if written.fingerprint == step.graph.fingerprint else ())
    chosen = planned.chosen(layers, step.problem(), placement)
  else:
    name = chosen_by = reasons_lib.A_MAP
    found = _by_layers(subject, step, known)
    placement, chosen, layers = found.placement, found.chosen, known
  refuse_illegal(placement, step.graph, f'"devices" of plan {name}',
                 'Correct it, or place the graph again.')
  return _ordered(
      placed_step.PlacedStep(subject, step, placement, name,
                             order_is_given=placement.priorities is not None,
                             chosen_by=chosen_by, chosen=chosen,
                             layer_plan=layers, alone_rounds=asked or
                             not layers), order, deadline)


def _ignores_pins(subject: subjects.Subject, plan: planned.Plan) -> bool:
  """Whether to read the graph without its requests by `tf.device`.

  True for a map of layers, and for a plan file that breaks a rule. If the plan
  also breaks other rules, a later check reports them. The subject has to allow
  the rounding that the plan allows.
  """
  if not isinstance(plan, str):
    return True
  step = subject.step
  placement = plan_lib.load(plan, step.graph, step.cluster)
  return bool(placement.violations(step.graph))


def _by_layers(subject: subjects.Subject, step: step_lib.Step,
               layers: planned.Plan) -> planned.Planned:
  """Places by a map of layers, and tells the user about problems of the map."""
  graph = step.graph
  try:
    found = planned.place(layers, step.problem())
  except misfits.DoesNotFitError as error:
    raise misfits.DoesNotFitError(
        f'The map of layers is not for "{graph.name}": {error}. Correct it.'
    ) from error
  for line in (*found.notes, *found.refused):
    subject.how.tell(f'The map of layers: {line}.')
  rounded = constraints.changes_numbers(graph, step.cluster,
                                        found.placement.devices)
  if rounded.any():
    subject.how.tell(f'{rounded.sum()} ops compute on another kind of device '
                     'than without the map, and round differently there.')
  return found


def _ordered(placed: placed_step.PlacedStep, order: str | None,
             deadline: deadlines.Deadline) -> placed_step.PlacedStep:
  """Adds or removes priorities by the order; adds none after the deadline."""
  priorities = placed.placement.priorities
  order = order_names.chosen(order, priorities is not None)
  config = _order_config(deadline)
  if order == order_names.FIFO:
    priorities = None
  elif priorities is None and config is not None:
    progress.doing('looking for an order')
    priorities = control_edges.control_edges(placed.graph, placed.placement,
                                             placed.simulator,
                                             config).priorities
  placement = placed.placement
  if priorities is not placement.priorities:
    placement = dataclasses.replace(placement, priorities=priorities)
  return dataclasses.replace(placed, placement=placement, order=order)


def _order_config(
    deadline: deadlines.Deadline) -> control_edges.OrderConfig | None:
  """Returns how to look for an order until a deadline; None if it is over."""
  left_s = deadline.left_s
  if left_s is None or deadline.clock is deadlines.still:
    return control_edges.OrderConfig()
  return control_edges.OrderConfig(max_s=left_s) if left_s else None
