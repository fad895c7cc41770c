"""All results of the simulation of one placement, in one object."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True, eq=False)
class Price:
  """A placement's step in both orders of ops, and the details of one order.

  Attributes:
    fifo_s: Seconds of the simulated step, first in, first out.
    ordered_s: Seconds of the simulated step with the control edges that pay:
      those of the placement's priorities or, without priorities, of the best
      order; see `Order.with_edges_s`. `fifo_s` if no edges pay.
    order: Order of the following fields, one of `order_names.ORDERS`.
    graph: The graph, with the control edges of this order.
    placement: The placement. If `order` is by priorities, the placement has the
      control edges, and the priorities that the edges enforce.
    evaluation: Price of the placement in this order.
    schedule: Simulated step in this order.
    critical_path_s: Seconds of the longest path of ops and transfers, a lower
      bound of the step in any order.
    busiest_s: Seconds of work of the busiest compute unit, as if no other unit
      used its memory bus. This is a lower bound of the step in any order.
  """

  fifo_s: float
  ordered_s: float
  order: str
  graph: op_graph.OpGraph
  placement: placement_lib.Placement
  evaluation: evaluator_lib.Evaluation
  schedule: schedule_lib.Schedule
  critical_path_s: float
  busiest_s: float

  def __repr__(self) -> str:
    return (f'<Price {self.graph.name} on {self.placement.cluster.name}: '
            f'step {self.fifo_s * 1e3:.4g} ms, ordered '
            f'{self.ordered_s * 1e3:.4g} ms (simulated)>')

  def to_json(self, graph: op_graph.OpGraph) -> dict[str, Any]:
    """JSON of everything but single ops.

    The field `step_time_s` is the step first in, first out.
    """
    cluster, sent = self.placement.cluster, self.schedule.transfer_tensors
    data = sent[sent >= 0]
    # A tensor that no execution makes is not sent.
    data = data[graph.executions[graph.tensor_ops[data]] > 0]
    busy_s = _busy_s(cluster, self.schedule)
    return {
        'graph': graph.name,
        'cluster': cluster.name,
        'simulated': True,
        'step_time_s': self.fifo_s,
        'ordered_step_time_s': self.ordered_s,
        'order': self.order,
        'valid': self.evaluation.valid,
        'peak_bytes': list(self.evaluation.peak_bytes),
        'violations': [v.message for v in self.evaluation.violations],
        'transfers': {
            'tensors': len(data), 'messages': int((sent < 0).sum()),
            'bytes': int(graph.tensor_bytes[data].sum())
        },
        'devices': [{
            'name': device.name, 'ops': int(ops), 'busy_s': float(seconds),
            'peak_bytes': self.evaluation.peak_bytes[pool]
        } for device, ops, seconds, pool in zip(
            cluster.devices,
            np.bincount(self.placement.devices, minlength=cluster.num_devices),
            busy_s, cluster.memory_pools)],
        'lower_bounds': {
            'critical_path_s': self.critical_path_s,
            'busiest_device_s': self.busiest_s
        },
    }


def price(graph: op_graph.OpGraph, placement: placement_lib.Placement,
          simulator: simulator_lib.Simulator,
          order: str | None = None) -> Price:
  """Simulates a placement in both orders.

  Args:
    graph: N ops.
    placement: Placement of these ops, on the simulator's cluster.
    simulator: Simulator that prices the placement.
    order: Order of the details, one of `order_names.ORDERS`. None means by
      priorities if the placement has priorities, else first in, first out.

  Raises:
    GdpError: `order` is unknown.
    ValueError: the placement breaks a rule of the graph or is on another
      cluster.
  """
  order = order_names.chosen(order, placement.priorities is not None)
  critical = critical_path_order.with_critical_path_order(
      graph, placement, simulator)
  assert critical.priorities is not None
  fifo = dataclasses.replace(placement, priorities=None)
  found = control_edges.control_edges(graph, placement, simulator)
  drawn, chosen = ((graph, fifo) if order == order_names.FIFO else
                   (edge_pricer.with_edges(graph, found.control_edges),
                    control_edges.attach(placement, found)))
  schedule = simulator.schedule(drawn, fifo)
  slots = np.array([d.slots for d in placement.cluster.devices])
  units = placement.cluster.compute_units
  work_s = np.bincount(units, _work_s(graph, schedule, simulator))
  width = np.zeros(len(work_s))
  np.maximum.at(width, units, slots)
  step_s = placement.cluster.step_s
  return Price(found.fifo_s, found.with_edges_s, order, drawn, chosen,
               simulator.evaluate(drawn, fifo), schedule,
               step_s + float(critical.priorities.max(initial=0.)),
               step_s + float((work_s / width).max()))


def _work_s(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
            simulator: simulator_lib.Simulator) -> np.ndarray:
  """float64 [D], seconds of ops and copies without memory contention."""
  cluster, ops = simulator.cluster, np.arange(graph.num_ops)
  seconds = simulator.op_seconds(graph)
  result = np.bincount(schedule.devices, seconds[ops, schedule.devices],
                       minlength=cluster.num_devices)
  tensors = schedule.transfer_tensors[schedule.work_transfers]
  data = tensors[tensors >= 0]  # Messages of control edges have no tensor.
  # A tensor that no execution makes is empty.
  made = graph.executions[graph.tensor_ops[data]] > 0
  sizes = np.zeros(len(tensors))
  sizes[tensors >= 0] = np.where(made, graph.tensor_bytes[data], 0)
  copy_s = np.array([d.copy_s for d in cluster.devices])
  per_byte = np.array(
      [1 / (d.copy_bytes_per_s or np.inf) for d in cluster.devices])
  return result + np.bincount(
      schedule.work_devices, copy_s[schedule.work_devices]
      + per_byte[schedule.work_devices] * sizes, minlength=cluster.num_devices)


def _busy_s(cluster: cluster_lib.Cluster,
            schedule: schedule_lib.Schedule) -> np.ndarray:
  """float64 [D], seconds of ops and copies in the schedule."""
  count = cluster.num_devices
  ops = np.bincount(schedule.devices, schedule.end_s - schedule.start_s,
                    minlength=count)
  return ops + np.bincount(schedule.work_devices, schedule.work_end_s
                           - schedule.work_start_s, minlength=count)
