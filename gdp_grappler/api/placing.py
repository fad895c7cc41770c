"""Places steps, and reads plans of them."""

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
from gdp_grappler.api import subjects
from gdp_grappler.api import telling
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import max_memory as max_memory_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.cluster import shortage
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
from gdp_grappler.placers.plans import planned
from gdp_grappler.placers.search.edges import edge_selection
from gdp_grappler.sharding import choice

Shapes = Mapping[str, Sequence[int]]
Tables = str | Mapping[str, int]
Plan = str | os.PathLike[str] | Mapping[str, str]

# Who gave a time budget should know of a reading that took longer.
_QUICK_S = 5.
# Of the time left: what comes after a search prices, orders and writes.
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
    graph: A Keras model: its training step if it is compiled, else its forward
      pass; a Python function that makes one, without allocating weights; a
      `tf.function`; a `tf.Graph`; or what `gdp place` takes: a file or folder,
      module:function, keras_applications:NAME or the name of a workload.
    cluster: A preset such as '2xP100', 'local', a file, or a `Cluster`.
    placer: One of those that `gdp place --help` lists.
    policy: Folder of a trained policy, for a placer that has one.
    plan: In place of a placer: a file, or devices by layer, {'words': 'CPU:0'}.
    order: 'critical_path' adds one if it should pay; 'fifo' drops a plan's.
    seed: The same gives the same plan, unless a clock ends the search.
    time_budget_s: Of the search; None for as long as it takes by itself.
    batch_size: Size of dimensions that the graph leaves open.
    trip_count: Iterations of while loops whose number it does not tell.
    profile: File of `gdp profile`; '' for the roofline.
    whole_graph: What no step runs restricts it, too: for a GraphDef.
    may_round: Whether float arithmetic may go where it is rounded otherwise.
    pins: 'keep' what the graph asks for by `tf.device`, or 'ignore' it.
    repeatable: No clock ends the search; the budget stands for placements.
    shape: Of a SavedModel's inputs that leave theirs open, {'x': (32, 8)}.
    signature: What a `tf.function` is called with; of a SavedModel its name.
    data: One batch, as `fit` takes it, if the model does not know its inputs.
    split_tables: Tables in parts, of a file or function: 'auto' for those that
      no device can hold, 'off', or layers, as {'words': 4}.
    max_memory: At most of each memory, in bytes or such as {'GPU:0': '12GB'}.
    verbose: Whether to show progress and assumptions; 'auto' where one looks.
    tell: Gets each line about assumptions, in place of standard error.

  Raises:
    InvalidGraphError: the graph is missing or cannot be used.
    InfeasiblePlacementError: it does not fit, or a plan breaks its rules.
    GdpError: an unknown name, or a file that cannot be used.
  """
  arguments.check_search(seed, time_budget_s)
  _check_choice(placer, policy, plan, order, profile)
  limits = max_memory_lib.read(max_memory)
  with telling.told(tell, verbose) as heard:
    how = subjects.Reading(batch_size, trip_count, profile, signature, heard,
                           may_round, pins, data, split_tables, limits, shape)
    subject, deadline = _read(graph, cluster, how, time_budget_s, repeatable)
    step = _with_whole(subject) if whole_graph else subject.step
    if plan is not None:
      return _planned(subject, step, plan, order, deadline)
    return _that_fits(step, subject, placer, policy, order, seed, deadline)


def _read(graph: Any, cluster: str | cluster_lib.Cluster, how: subjects.Reading,
          time_budget_s: float | None,
          repeatable: bool) -> tuple[subjects.Subject, deadlines.Deadline]:
  """The step, and when it is to be placed: reading is not in the budget."""
  begin_s = time.monotonic()
  subject = subjects.read(graph, cluster, how)
  took_s = time.monotonic() - begin_s
  if time_budget_s is not None and took_s > _QUICK_S:
    how.tell(f'Reading took {took_s:.0f} s. The time budget is for the search '
             'alone.')
  clock = deadlines.still if repeatable else time.monotonic
  return subject, deadlines.within(time_budget_s, clock)


def _that_fits(step: step_lib.Step, subject: subjects.Subject, placer: str,
               policy: str | None, order: str | None, seed: int,
               deadline: deadlines.Deadline) -> placed_step.PlacedStep:
  """What a placer finds, unless it does not fit or nothing can."""
  _refuse(shortage.is_certain(step.graph, step.cluster))
  found = by_placer(subject, step, placer, policy, order, seed, deadline)
  if not found.fits:
    _refuse(
        shortage.of_placement(step.graph, step.cluster, found.fifo.peak_bytes))
  return found


def _refuse(shortage_found: str) -> None:
  """Raises an error for what does not fit, if there is any."""
  if shortage_found:
    raise errors.InfeasiblePlacementError(
        f'{shortage_found} Nothing was written.')


def _with_whole(subject: subjects.Subject) -> step_lib.Step:
  """The step under the rules of what no step runs as well."""
  step = subject.step
  return dataclasses.replace(
      step, graph=whole_graph_lib.with_rules(step.graph,
                                             subject.whole().graph))


def by_placer(
    subject: subjects.Subject, step: step_lib.Step, placer: str,
    policy: str | None = None, order: str | None = None, seed: int = 0,
    deadline: deadlines.Deadline = deadlines.NEVER) -> placed_step.PlacedStep:
  """Places a step that has been read; arguments and errors as of `place`.

  But for `deadline`: when it is to be done, its order included.
  """
  if deadline.passed:
    subject.how.tell(
        'The time budget was over once the graph was read; searches take '
        'their first placement.')
  progress.doing(f'placing {step.graph.num_ops} ops by {placer}')
  simulator, ordered = step.simulator(), order == order_names.CRITICAL_PATH
  problem = dataclasses.replace(step.problem(seed=seed),
                                time_budget_s=_search_s(placer, deadline),
                                clock=deadline.clock,
                                simulator=simulator if ordered else None)
  found = best_of.proposals_of(registry.create(placer, policy), problem)
  progress.doing('pricing what was found')
  choice = edge_selection.best(
      problem, found, simulator, lambda _: _order_config(deadline)
      if ordered else None)
  placement = (choice.kept if choice.order is not None else dataclasses.replace(
      choice.placement, priorities=None))
  refuse_illegal(placement, step.graph, f'The placement by {placer}',
                 'Nothing was written.')
  return _ordered(placed_step.PlacedStep(subject, step, placement, placer),
                  order, deadline)


def _search_s(placer: str, deadline: deadlines.Deadline) -> float | None:
  """Seconds of a search; None for as many as it takes by itself.

  Of a placer that learns no clock is to count if none moves: it has a number of
  rounds.
  """
  learns = registry.get(placer).kind == placer_table.Kind.LEARNS
  if learns and deadline.clock is deadlines.still:
    return None
  return deadline.after(_SEARCH_SHARE).left_s


def load_plan(plan: str | os.PathLike[str], graph: Any,
              cluster: str | cluster_lib.Cluster | None = None, *,
              batch_size: int = assumptions.DEFAULT_BATCH_SIZE,
              trip_count: int = assumptions.DEFAULT_TRIP_COUNT,
              profile: str = '', signature: Sequence[Any] | None = None,
              shape: Shapes | None = None, may_round: bool = False,
              data: Any = None, split_tables: Tables = choice.AUTO,
              verbose: bool | str = telling.AUTO,
              tell: telling.Tell | None = None) -> placed_step.PlacedStep:
  """Reads what `PlacedStep.save` or an editor wrote.

    gdp_grappler.load_plan('plan.json', model).step_time_s

  Args:
    plan: A plan file.
    graph: The graph it was made for, as of `place`.
    cluster: Where it is to run; by default the plan's own.
    batch_size: As of `place`.
    trip_count: As of `place`.
    profile: As of `place`.
    signature: As of `place`.
    shape: As of `place`.
    may_round: As of `place`.
    data: As of `place`.
    split_tables: As of `place`.
    verbose: As of `place`.
    tell: As of `place`.

  Raises:
    PlanError: the file is missing or damaged, or for another graph.
    InfeasiblePlacementError: it breaks a rule of the graph.
    GdpError: as of `place`.
  """
  if cluster is None:
    cluster = _cluster_of(os.fspath(plan))
  with telling.told(tell, verbose) as heard:
    subject = subjects.read(
        graph, cluster,
        subjects.Reading(batch_size, trip_count, profile, signature, heard,
                         may_round, data=data, split_tables=split_tables,
                         shape=shape))
    return of_plan(subject, plan)


def _cluster_of(plan: str) -> cluster_lib.Cluster:
  """The cluster that a plan was made for."""
  if plan_lib.read_layers(plan) is not None:
    raise errors.PlanError(
        f'{plan} is a map of layers, which names no cluster. Give one, such as '
        f'{spelling.argument("cluster", "2xP100")}.')
  return plan_lib.read(plan).cluster


def simulate(graph: Any, plan: str | os.PathLike[str],
             cluster: str | cluster_lib.Cluster | None = None, *,
             order: str | None = None, **reading: Any) -> price_lib.Price:
  """Prices a plan in both orders.

    gdp_grappler.simulate('graph.pb', 'plan.json').fifo_s

  Args:
    graph: As of `place`.
    plan: A plan file.
    cluster: Where it is to run; by default the plan's own.
    order: 'fifo' or 'critical_path', which memory and schedule are about; by
      default the plan's.
    **reading: As of `load_plan`.

  Raises:
    GdpError: as of `load_plan`.
    ValueError: there is no such order.
  """
  return load_plan(plan, graph, cluster, **reading).price(order)


def of_plan(subject: subjects.Subject,
            plan: str | os.PathLike[str]) -> placed_step.PlacedStep:
  """A step as a plan file has it; errors as of `load_plan`."""
  return _planned(subject, subject.step, plan, None,
                  remedy='Correct it, or place the graph again.')


def refuse_illegal(placement: placement_lib.Placement, graph: op_graph.OpGraph,
                   origin: str, remedy: str) -> None:
  """Raises an error unless the placement keeps the graph's rules.

  Args:
    placement: Of the graph.
    graph: N ops.
    origin: What to call the placement.
    remedy: What to do, or what was not done.

  Raises:
    InfeasiblePlacementError: it breaks one.
  """
  violations = placement.violations(graph)
  if violations:
    count = len(violations)
    raise errors.InfeasiblePlacementError(
        f'{origin} breaks {count} rule{"s" * (count > 1)} of graph '
        f'"{graph.name}", such as: {violations[0].message}. {remedy}')


def _check_choice(placer: str, policy: str | None, plan: Plan | None,
                  order: str | None, profile: str = '') -> None:
  """Fails before the work, not after it."""
  arguments.check_names(placer=placer, policy=policy, profile=profile)
  arguments.check_plan(plan)
  if plan is not None and (policy is not None or placer != registry.DEFAULT):
    raise errors.GdpError('A plan takes the place of a placer and its policy. '
                          'Give one of them.')
  if order is not None and order not in order_names.ORDERS:
    raise errors.GdpError(f'Unknown order "{order}"; there are '
                          f'{", ".join(order_names.ORDERS)}.')
  registry.factory(placer, policy)  # Some have to be before TensorFlow.


def _planned(subject: subjects.Subject, step: step_lib.Step, plan: Plan,
             order: str | None, deadline: deadlines.Deadline = deadlines.NEVER,
             remedy: str = 'Nothing was written.') -> placed_step.PlacedStep:
  known = (layer_map.checked(plan)
           if isinstance(plan, Mapping) else planned.of_file(os.fspath(plan)))
  if step is subject.step and _moves_asked(subject, known):
    subject = subject.without_asked()
    step = subject.step
  asked = step.graph.may_round
  if planned.may_round(known) and not asked:
    subject, step = subject.that_may_round(), step.that_may_round()
  if isinstance(known, str):
    name, placement = known, plan_lib.load(known, step.graph, step.cluster)
    written = plan_lib.read(known)
    chosen_by, layers = written.placed_by, written.layers
    chosen = planned.chosen(layers, step.problem(), placement)
  else:
    name = chosen_by = reasons_lib.A_MAP
    found = _by_layers(subject, step, known)
    placement, chosen, layers = found.placement, found.chosen, known
  refuse_illegal(placement, step.graph, f'"devices" of plan {name}', remedy)
  return _ordered(
      placed_step.PlacedStep(subject, step, placement, name,
                             order_is_given=placement.priorities is not None,
                             chosen_by=chosen_by, chosen=chosen,
                             layer_plan=layers, alone_rounds=asked or
                             not layers), order, deadline)


def _moves_asked(subject: subjects.Subject, plan: planned.Plan) -> bool:
  """Whether a plan is not for what the graph asks for by `tf.device`.

  Where it breaks other rules as well, those are told.
  """
  if not isinstance(plan, str):
    return True
  step = subject.step
  placement = plan_lib.load(plan, step.graph, step.cluster)
  return bool(placement.violations(step.graph))


def _by_layers(subject: subjects.Subject, step: step_lib.Step,
               layers: planned.Plan) -> planned.Planned:
  """As a map of layers has it; what a user should know is told."""
  graph = step.graph
  try:
    found = planned.place(layers, step.problem())
  except planned.DoesNotFitError as error:
    raise planned.DoesNotFitError(
        f'The map of layers is not for "{graph.name}": {error}. Correct it.'
    ) from error
  for line in (*found.notes, *found.refused):
    subject.how.tell(f'The map of layers: {line}.')
  rounded = constraints.rounded(graph, step.cluster, found.placement.devices)
  if rounded.any():
    subject.how.tell(f'{rounded.sum()} ops compute on another kind of device '
                     'than by themselves, and round otherwise there.')
  return found


def _ordered(placed: placed_step.PlacedStep, order: str | None,
             deadline: deadlines.Deadline) -> placed_step.PlacedStep:
  """With priorities where the order means some; no new ones when it is late."""
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
  """How to look for an order until then; None if it is too late."""
  left_s = deadline.left_s
  if left_s is None or deadline.clock is deadlines.still:
    return control_edges.OrderConfig()
  return control_edges.OrderConfig(max_s=left_s) if left_s else None
