"""One cell: runs a placer on a task, and describes its placement."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import pathlib
from typing import Any, Mapping, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan
from gdp_grappler.evaluation import bounds
from gdp_grappler.evaluation import deadline_evaluator
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation import price as price_lib
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.placers.search.edges import edge_selection
from gdp_grappler.placers.simple import single_device
from gdp_grappler.problems import rewards
from placer_model.benchmark import clocks
from placer_model.benchmark import loading
from placer_model.benchmark import settings as settings_lib

OK, OOM = 'ok', 'oom'
# INFEASIBLE: the placer reports that it has no placement. FAILED: the cell has
# no result for any other reason.
INFEASIBLE, FAILED = 'infeasible', 'failed'
# Fields that come from the run of a placement.
_OF_STEP = ('status', 'step_time_s', 'spread_s', 'over_bound', 'peak_bytes',
            'missing_bytes')
# Largest number of points of a curve, about the pixels of a picture.
_MOST_POINTS = 500


class IllegalPlacementError(errors.GdpError):
  """A placer violated a rule of the graph, which is always a bug."""


def run(loaded: loading.Loaded, settings: settings_lib.Settings, name: str,
        simulator: simulator_lib.Simulator,
        plan_path: pathlib.Path) -> dict[str, Any]:
  """Runs a placer, prices its placement, and writes the plans.

  Args:
    loaded: The task.
    settings: Settings of the run.
    name: Name of the placer.
    simulator: Simulator of the task's cluster, with the task's cost model.
    plan_path: File for the placement. If control edges are predicted to pay,
      the ordered placement gets the file `ordered_plan(plan_path)`.

  Returns:
    The fields of the cell's record.

  Raises:
    GdpError: the placer cannot place, or violated a rule of the graph.
  """
  with _evaluator(loaded, settings, simulator) as evaluator:
    # Imports, the loading of a policy and the start of processes do not count
    # as search.
    placer = registry.create(name)
    _start(evaluator, loaded)
    budget_s = settings.budget_s(name)
    clock = clocks.CLOCKS[settings.clock]
    recorder = recording_evaluator.Recorder(
        robust_evaluator.objective(evaluator), clock)
    problem = placer_lib.Problem(loaded.graph, loaded.cluster,
                                 _in_time(recorder, budget_s), settings.seed,
                                 loaded.expert_devices, budget_s,
                                 simulator=simulator, clock=clock)
    start = clock()
    proposals = best_of.proposals_of(placer, problem)
    seconds = clock() - start
    for placement in proposals:
      _refuse_illegal(name, placement, loaded.graph)
    placement = proposals[0]
    plan_path.parent.mkdir(parents=True, exist_ok=True)
    plan.save(str(plan_path), loaded.graph, placement)
    result, ordered = _price(loaded, evaluator, simulator, placement,
                             _to_order(problem, simulator, proposals))
    if ordered is not None:
      plan.save(str(ordered_plan(plan_path)), loaded.graph, ordered)
  return {
      **result, **_placed(placement, loaded.graph),
      **_bounds(loaded, simulator, placement, result),
      **_search(recorder, seconds, placer), 'simulated': settings.simulated
  }


def with_step_of(record: Mapping[str, Any], other: Mapping[str, Any],
                 ordered: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a cell's record with the measured steps of other cells.

  Args:
    record: Record of a cell with a placement.
    other: Record of a cell with the same placement.
    ordered: Record of a cell with the same ordered placement; not used if the
      cell has none.
  """
  result = {**record, **{name: other[name] for name in _OF_STEP}}
  has_edges = record['ordered_step_time_s'] != record['step_time_s']
  result['ordered_step_time_s'] = (ordered['ordered_step_time_s']
                                   if has_edges else other['step_time_s'])
  return digests.sealed({k: v for k, v in result.items() if k != digests.FIELD})


def ordered_plan(plan_path: pathlib.Path) -> pathlib.Path:
  """Returns the file of the placement with control edges, beside a plan."""
  return plan_path.with_name(f'{plan_path.stem}-ordered.json')


def _evaluator(
    loaded: loading.Loaded, settings: settings_lib.Settings,
    simulator: simulator_lib.Simulator
) -> contextlib.AbstractContextManager[evaluator_lib.Evaluator]:
  """Returns a context manager that ends the processes of its evaluator."""
  if settings.simulated:
    return contextlib.nullcontext(simulator)
  if settings.reward == rewards.EMULATED:
    from gdp_grappler.evaluation.emulation import emulator
    return emulator.Emulator(loaded.cluster, loaded.cost_model)
  from tensorflow.core.protobuf import meta_graph_pb2

  from gdp_grappler.evaluation.measuring import measurer
  from gdp_grappler.graph import source_graph
  return measurer.Measurer(
      source_graph.from_meta_graph(
          meta_graph_pb2.MetaGraphDef.FromString(loaded.source)),
      loaded.cluster, batch_size=settings.batch_size,
      local_workers=settings.local_workers)


def _start(evaluator: evaluator_lib.Evaluator, loaded: loading.Loaded) -> None:
  """Runs one placement, as the first run starts the evaluator's processes."""
  if evaluator.simulated:
    return
  first = single_device.first_device(loaded.cluster, 'GPU')
  problem = placer_lib.Problem(loaded.graph, loaded.cluster, evaluator)
  evaluator.evaluate(
      loaded.graph,
      single_device.all_on(problem,
                           loaded.cluster.host if first is None else first))


def _in_time(evaluator: evaluator_lib.Evaluator,
             budget_s: float | None) -> evaluator_lib.Evaluator:
  """Returns an evaluator that stops a search after its time budget.

  Some searches do not look at the clock. With measured or emulated steps they
  would exceed their budget. Simulated prices are never refused.
  """
  if evaluator.simulated:
    return evaluator
  return deadline_evaluator.DeadlineEvaluator(evaluator,
                                              deadlines.within(budget_s))


def _refuse_illegal(name: str, placement: placement_lib.Placement,
                    graph: op_graph.OpGraph) -> None:
  violations = placement.violations(graph)
  if violations:
    raise IllegalPlacementError(
        f'ILLEGAL PLACEMENT by {name}: it breaks {len(violations)} rules, the '
        f'first: {violations[0].message}. This is a bug; please report it.')


def _to_order(
    problem: placer_lib.Problem, simulator: simulator_lib.Simulator,
    proposals: Sequence[placement_lib.Placement]) -> placement_lib.Placement:
  """Returns the proposal that is predicted to be best with control edges."""
  if len(proposals) == 1:
    return dataclasses.replace(proposals[0], priorities=None)
  simulated = dataclasses.replace(
      problem, evaluator=robust_evaluator.objective(simulator))
  return edge_selection.best(simulated, proposals, simulator,
                             lambda _: control_edges.OrderConfig()).with_order


def _price(
    loaded: loading.Loaded, evaluator: evaluator_lib.Evaluator,
    simulator: simulator_lib.Simulator, placement: placement_lib.Placement,
    to_order: placement_lib.Placement
) -> tuple[dict[str, Any], placement_lib.Placement | None]:
  """Returns step times and memory of a placement, and the ordered placement.

  Args:
    loaded: The task.
    evaluator: Evaluator of step times.
    simulator: Predicts what control edges gain.
    placement: Placement to price with ready ops first in, first out.
    to_order: Placement to price with control edges, perhaps another one; it has
      the priorities with which a search found it, if any.

  Returns:
    Fields of the record, and the placement with the priorities that the control
    edges enforce; None if the ordered step is the step of `placement`.
  """
  graph, cluster = loaded.graph, loaded.cluster
  fifo = evaluator.evaluate(graph,
                            dataclasses.replace(placement, priorities=None))
  broken = [v.message for v in fifo.violations if v.kind != 'memory']
  if broken and not fifo.simulated:
    raise errors.MeasurementError(f'The placement does not run: {broken[0]}')
  if broken:
    raise IllegalPlacementError(f'ILLEGAL PLACEMENT: {broken[0]}')
  ordered, with_edges = _ordered(graph, evaluator, simulator, to_order, fifo)
  missing = np.maximum(np.array(fifo.peak_bytes) - cluster.pool_bytes, 0)
  spread = {} if fifo.simulated else {'spread_s': fifo.spread_s}
  return {
      'status': OK if fifo.valid else OOM,
      'step_time_s': _seconds(fifo),
      **spread,
      'ordered_step_time_s': _seconds(ordered),
      'peak_bytes': _per_device(fifo.peak_bytes, cluster),
      'capacity_bytes': _per_device(cluster.pool_bytes, cluster),
      'missing_bytes': _per_device(missing, cluster, only_positive=True),
  }, with_edges


def _ordered(
    graph: op_graph.OpGraph, evaluator: evaluator_lib.Evaluator,
    simulator: simulator_lib.Simulator, to_order: placement_lib.Placement,
    fifo: evaluator_lib.Evaluation
) -> tuple[evaluator_lib.Evaluation, placement_lib.Placement | None]:
  """Returns the step with control edges, and the placement that has them.

  If no edges are predicted to pay, it returns the step without edges, and None.
  """
  order = control_edges.control_edges(graph, to_order, simulator)
  if not len(order.control_edges):
    return fifo, None
  with_edges = control_edges.attach(to_order, order)
  ordered = control_edges.evaluate(graph, with_edges, evaluator, simulator)
  # Edges shorten the step of `to_order`, but `fifo` may be of another placement
  # whose robust price is higher, and whose step is shorter nevertheless.
  pays = ordered.valid and ordered.step_time_s < fifo.step_time_s
  if evaluator.simulated and fifo.valid and not pays:
    return fifo, None
  return ordered, with_edges


def _placed(placement: placement_lib.Placement,
            graph: op_graph.OpGraph) -> dict[str, Any]:
  tensors, size = placement.cut(graph)
  return {'ops': placement.counts(), 'cut_tensors': tensors, 'cut_bytes': size}


def _bounds(loaded: loading.Loaded, simulator: simulator_lib.Simulator,
            placement: placement_lib.Placement,
            result: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the ratio to the lower bound, and what limits the placement."""
  if loaded.bound is None:
    return {'lower_bound_s': None, 'over_bound': None, 'limits': None}
  price = price_lib.price(loaded.graph,
                          dataclasses.replace(placement, priorities=None),
                          simulator)
  step_s, bound_s = result['step_time_s'], loaded.bound.seconds
  return {
      'lower_bound_s': bound_s,
      'over_bound': step_s / bound_s if step_s and bound_s else None,
      'limits': {
          'critical_path_s':
              price.critical_path_s, 'busiest_device_s':
                  price.busiest_s, 'busiest_channel_s':
                      bounds.busiest_channel_s(price.schedule, loaded.cluster,
                                               loaded.graph),
          'busiest_hosted_s':
              _busiest_hosted_s(loaded, simulator, placement)
      }
  }


def _busiest_hosted_s(loaded: loading.Loaded,
                      simulator: simulator_lib.Simulator,
                      placement: placement_lib.Placement) -> float:
  """Returns seconds of the busiest GPU, with the host's dispatch for it.

  This is no lower bound of a step (`busy.seconds`).
  """
  problem = placer_lib.Problem(loaded.graph, loaded.cluster, simulator)
  devices = placement.devices
  of_devices = np.bincount(
      devices, problem.busy_seconds[np.arange(len(devices)), devices],
      minlength=loaded.cluster.num_devices)
  on_gpus = [device.asynchronous for device in loaded.cluster.devices]
  return loaded.cluster.step_s + float(of_devices[on_gpus].max(initial=0.))


def _search(recorder: recording_evaluator.Recorder, seconds: float,
            placer: placer_lib.Placer) -> dict[str, Any]:
  curve = [[int(count), round(float(at_s), 4),
            float(step_s)] for count, at_s, step_s in recorder.curve
           if math.isfinite(step_s)]
  stride = -(-len(curve) // _MOST_POINTS) or 1
  kept = curve[::stride]
  if curve and kept[-1] != curve[-1]:
    kept.append(curve[-1])
  winner = placer.winner if isinstance(placer, placer_lib.Chooser) else None
  return {
      'evaluations': int(recorder.evaluations), 'seconds': round(seconds, 4),
      'curve': kept, 'won_by': winner or ''
  }


def _seconds(evaluation: evaluator_lib.Evaluation) -> float | None:
  return evaluation.step_time_s if evaluation.valid else None


def _per_device(values: np.ndarray | tuple[int, ...],
                cluster: cluster_lib.Cluster,
                only_positive: bool = False) -> dict[str, int]:
  """Returns values by device; devices with a common memory share the figure."""
  found = {
      label: int(values[pool])
      for label, pool in zip(cluster.device_labels, cluster.memory_pools)
  }
  return {k: v for k, v in found.items() if v or not only_positive}
