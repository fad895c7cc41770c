"""What moves from one placement look like, told by its simulated step.

The step is simulated once per placement; each move then costs what it touches,
a small part of simulating it. All is in C++; the rules in short:

* Slack is how much later an op could end without a longer step, if all that
  comes after it on its device and in the graph kept its order and its distance.
  What has none counts as critical, what has 2 % of the step half as much.
* An op waits from when its inputs are there until it starts.
* What is sent takes the link's latency and its bytes; a net, one tensor with
  all its consumers, is sent once to each device.
* An input or an output is late by what it comes after the latest start of its
  consumer, if its producer ended when it does now.
* Crowding is the work that would come to the target at times when it is busy.

Groups that a move takes away can be placed anew instead, one after the other in
the order in which they run, as a list scheduler would (destroy and repair; P.
Shaw, "Using Constraint Programming and Local Search Methods to Solve Vehicle
Routing Problems", CP 1998): each goes where the sum is least of its end, of the
most that its outputs come too late by, of what it sends and receives, and of
all that the device has to do, by weights that the caller gives. All else stays
where and when it is. A device without room is for what fits nowhere. A group
counts as one piece of work, which begins when all its inputs are there, even if
only its last op needs them.

Nothing that a runtime does is simulated for a move, so an overflow is that of
the peak plus all bytes that come.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import busy
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.features.moves import native_features
from gdp_grappler.graph import op_graph

_SHORTEST_S = 1e-12


class MoveFeaturizer:
  """Describes moves of the G groups of one graph; for one thread at a time."""

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               costs: cost_model.CostModel) -> None:
    """Lays the graph out.

    Args:
      graph: N ops in G groups.
      cluster: D devices.
      costs: Of its ops.
    """
    self._graph, self._cluster = graph, cluster
    self._simulator = simulator_lib.Simulator(cluster, costs, threads=1)
    # What is received is known once the event manager has polled.
    asynchronous = np.array([d.asynchronous for d in cluster.devices])
    hop_s = np.array([d.hop_s for d in cluster.devices])
    self._hop_s = np.where(asynchronous[:, None], hop_s[:, None], hop_s[None])
    self._features = native_features.NativeFeatures(
        self._layout(
            busy.seconds(graph, cluster, costs,
                         self._simulator.op_seconds(graph))))

  def observe(self, devices: np.ndarray,
              priorities: np.ndarray | None = None) -> None:
    """Moves are made from here on.

    Args:
      devices: int [G], legal.
      priorities: float64 [N] in which ops run; None for first in, first out.
    """
    placement = dataclasses.replace(
        placement_lib.from_groups(self._graph, devices, self._cluster),
        priorities=priorities)
    step = self._simulator.schedule(self._graph, placement)
    self._features.observe(
        native_features.Observed(devices=devices, start_s=step.start_s,
                                 end_s=step.end_s,
                                 step_s=max(step.step_time_s, _SHORTEST_S),
                                 transfer_tensors=step.transfer_tensors,
                                 transfer_ops=step.transfer_ops,
                                 transfer_targets=step.transfer_targets,
                                 transfer_arrival_s=self._arrival_s(step),
                                 peak_bytes=step.peak_bytes))

  def describe(self, devices: np.ndarray) -> np.ndarray:
    """float32 [K, F], the features `schema.NATIVE` of K moves.

    Args:
      devices: int [K, G], to which the moves lead; 0 where nothing moves.
    """
    return self._features.describe(devices)

  def replace(self, devices: np.ndarray, places: np.ndarray,
              allowed: np.ndarray, weights: np.ndarray,
              most: int) -> np.ndarray:
    """See `native_features.NativeFeatures.replace`."""
    return self._features.replace(devices, places, allowed, weights, most)

  def _arrival_s(self, step: schedule_lib.Schedule) -> np.ndarray:
    """float64 [M], when what is transferred can be used."""
    arrival_s = step.transfer_end_s + self._hop_s[step.transfer_sources,
                                                  step.transfer_targets]
    # The receiver's own work comes after the sender's.
    np.maximum.at(arrival_s, step.work_transfers, step.work_end_s)
    return arrival_s

  def _layout(self, busy_seconds: np.ndarray) -> native_features.FeatureLayout:
    graph, cluster = self._graph, self._cluster
    alive = graph.executions > 0
    own = graph.output_bytes * (alive & ~simulator_lib.aliases(graph))
    latency_s, bytes_per_s, _ = cluster.link_arrays
    units = cluster.compute_units
    slots = np.ones(units.max() + 1, int)
    np.maximum.at(slots, units, [device.slots for device in cluster.devices])
    return native_features.FeatureLayout(
        edges=graph.edges, edge_tensors=graph.edge_tensors,
        tensor_bytes=graph.tensor_bytes * alive[graph.tensor_ops],
        groups=graph.groups, order=graph.topological_order,
        seconds=busy_seconds, memory_bytes=graph.param_bytes + own,
        latency_s=latency_s + self._hop_s, bytes_per_s=bytes_per_s,
        pools=cluster.memory_pools, pool_bytes=cluster.pool_bytes, units=units,
        serial=slots == 1)
