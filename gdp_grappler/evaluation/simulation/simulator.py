"""The price of a placement by event-driven simulation.

The rules are those of TensorFlow's executor; docs/simulator.md introduces them.
These are the rules for synchronous devices, such as CPUs:

* Ops. An op starts when all its inputs, data and control, are on its device and
  its compute unit has a free slot. A unit has as many slots as the largest
  `slots` of its devices; devices with the same `compute` share a unit.
* Order. Waiting ops start by decreasing priority if the placement has
  priorities. Ops of one priority start in the order in which they became ready.
  Ops that became ready at one moment start in topological order.
* Sends. When an op ends, each of its tensors is sent once to every other device
  that consumes it: tensors in the order of the graph, then devices in the order
  of the first consumer. Ops that end at one moment send in topological order.
* Transfers. A transfer takes the link's latency plus bytes / bandwidth, and
  occupies all channels of the link for this time. A channel serves transfers in
  the order of their requests. Transfers run in parallel to compute.
* Messages. A control edge is a message, sent once per op and device. Messages
  and empty tensors take the latency only, and occupy no channel.
* Work for transfers. A device without copy engines computes `copy_s` plus bytes
  / `copy_bytes_per_s` for each transfer or message. The sender does this work
  when the op has ended, and requests the transfer afterwards. The receiver does
  it when the transfer has ended, and the tensor arrives afterwards. The work
  fills a slot, and comes before any waiting op. Work runs in the order in which
  it fell due. Work that fell due at one moment runs in the order in which the
  ops of the transfers ended. If work and ops end at one moment, the requests of
  the ops come first.
* Memory. A tensor occupies its producer's memory from the producer's start
  until its last consumer on this device and its last transfer have ended. A
  received copy occupies the receiver's memory from the transfer's start until
  its last consumer has ended. Workspace is allocated while its op runs,
  parameters and constants throughout, because the kernel of a `Const` keeps its
  tensor. At one moment, memory is freed before new memory is allocated.
* Aliases. An op that aliases (`ReadVariableOp`, `Identity`, `Reshape`, ...)
  occupies nothing. It keeps the buffer of its first data input alive. A `Merge`
  keeps the buffer of its first input from a branch that runs.
* Loops and conditions. A while loop is not unrolled: all executions of an op
  run in a row. An op without executions, in a branch that is not taken,
  produces empty tensors. A `Merge` waits for both branches; the dead branch
  takes no time to compute.
* Memory buses. Compute units may share a bus (`cost_model.Contention`). An op,
  or work for a transfer, takes `shares` of its device longer for each other
  unit of the bus that is busy at its start. A unit is busy if it runs something
  that started before this moment and ends later.
* A step begins with `Cluster.step_s`, in which nothing else happens.

A device may be asynchronous (`Device.asynchronous`), as GPUs are: the executor
takes an op as done when the op is on the device's compute stream. The rules for
asynchronous devices are:

* Threads. Each thread dispatches items one after the other, from a first in,
  first out queue of its own. One thread per device dispatches all ops without
  inputs, in topological order. Every op that became ready because something
  arrived from another device gets a new thread. At one moment, threads act in
  the order in which they began.
* Launches. An op whose seconds are not 0 launches kernels. A thread takes the
  op from its queue and prepares it for `dispatch_s` less `lock_s`. Then the
  thread waits for the lock of the driver's context. It holds the lock for
  `lock_s` per kernel. An op that runs several times takes as many times as
  long. TensorFlow's work beyond a bare launch (`CostModel.host_work`) comes
  before the lock. An op whose seconds are 0 only takes `visit_s`.
* Locks. A lock serves threads in the order in which they took up their items.
  Threads launch on one device one after the other, in the same order. The
  reason: no two threads were seen to feed a stream faster than one thread.
* Kernels. A dispatched op starts `gap_s` after the end of all that was
  dispatched to its compute unit before. It needs no slot.
* Outputs are handed on at dispatch. Ops that become ready join the end of the
  same queue, and so do transfers: tensors in the order of the graph, for each
  tensor its consumers, then control edges. So dispatch is breadth first, and
  runs far ahead of the stream.
* Cut cards. Asynchronous devices that share a context are cut from one card,
  which takes turns between its streams. The gap before a kernel, and between
  the runs of an op, is longer by `switch_s` for each other stream that has work
  when a thread takes up the op. These streams are the compute streams of the
  other devices, and the streams on which devices of the context copy to
  asynchronous devices. A kernel gets the share of the card that earlier kernels
  leave free (`card_shares`).
* Issue. A transfer from or to an asynchronous device waits in the queue of a
  thread. At the head of the queue the thread issues it, in `copy_dispatch_s`.
  The thread holds the lock in the last part of this time, in the proportion of
  `lock_s` to `dispatch_s`. For a message, an empty tensor is made first.
  So a message at the head of the queue takes `visit_s`, joins the end of the
  queue, and is issued when it is at the head again.
* Issue from a synchronous device. Two threads take part: the sender's thread,
  and the receiver's thread of ops without inputs, which asks for the tensor.
  The later of the two issues the transfer. As long as the receiver's thread has
  not taken up the last of its ops, the transfer joins the end of its queue.
  After that another thread issues the transfer, `copy_dispatch_s` after the op
  has ended. For a message, the sender has made the empty tensor already.
* Copy streams. An asynchronous device has three: to asynchronous devices, to
  synchronous ones, and from synchronous ones. Each runs copies one after the
  other in the order of issue, and a blocked copy delays the rest. Messages and
  empty tensors wait in the stream, but do not occupy it.
* Waiting. A copy waits for its issue, and for the work that both compute
  streams had when its thread took it up: the sender's because the result must
  exist, the receiver's because the memory must be free. Messages and empty
  tensors wait for the receiver only if their sender is synchronous. Then the
  link gets the request for the copy.
* Arrival. The event manager looks for the end of a copy for the first time
  twice the link's latency after the issue. If the copy has ended by then, it
  arrives `callback_s` after its end. Else the event manager looks repeatedly,
  and the copy arrives `poll_s` later, on average. At the arrival the sender's
  memory is freed. Both times are those of the asynchronous sender, or else of
  the receiver.
* Memory. An op's outputs, and received copies, are allocated when a thread
  takes them up. An op frees its inputs and workspace when it has been
  dispatched, because later owners of this memory come later on the stream.
* Asynchronous devices neither slow a bus nor are slowed by it.
* Ops that work on the host (`op_details.leave_gpus`) are simulated as if they
  were on the CPU of their GPU's host, if this CPU is a device of the cluster.
* Memory of the host. An op on a GPU has some of its tensors in the memory of
  the host (`OpGraph.made_on_host`, `OpGraph.read_on_host`). These tensors are
  simulated as if they were on the CPU of the host: they occupy its memory, and
  a transfer takes them from or to a GPU, also if one GPU has both ops. The
  thread that dispatches the producer issues this transfer. Consumers on one
  device share a transfer, consumers on several GPUs of a host do not. A tensor
  that is made and read in the memory of one host needs no transfer. An
  asynchronous device hands it on at the producer's dispatch. If a consumer on
  another device becomes ready by it, the consumer gets a new thread.

TensorFlow has no priorities, and dispatch leaves no choice between ops. With
priorities an asynchronous device is simulated op by op like a synchronous one,
with copies as above. This is the best that control edges can achieve.
`ordering` finds such edges, and prices them without priorities.
`price_in_order` is between the two: dispatch keeps the order in which
priorities start ops, and runs ahead of the stream.

At one moment, events happen in this order: ops end; work for transfers ends;
transfers start or end; copies arrive, in the order of their requests; threads
dispatch. The step ends when the last stream and the last thread end.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from typing import Callable, TypeVar
import weakref

import numpy as np

from gdp_grappler import cores
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import shortage
from gdp_grappler.evaluation import arguments
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation.costs import calibrated_costs
from gdp_grappler.evaluation.costs import cost_model as cost_model_lib
from gdp_grappler.evaluation.simulation import native_simulator
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.legality import orderable

_T = TypeVar('_T')


class Simulator(evaluator.Evaluator):
  """Prices placements on one cluster; deterministic.

  An `OpGraph` holds no seconds. By default, the simulator computes them from
  FLOPs and bytes. `PlacedStep.simulator` has the seconds that a graph file or a
  profile states.

  Data that do not depend on the placement are prepared once per graph, and kept
  as long as the graph lives. An object may be used from several threads at
  once.

  Attributes:
    cluster: Cluster whose devices placements index.
    cost_model: Seconds and bytes of each op.
    threads: Number of placements that are simulated in parallel.
  """

  simulated = True

  def __init__(self, cluster: cluster_lib.Cluster,
               cost_model: cost_model_lib.CostModel | None = None,
               threads: int | None = None) -> None:
    """Initializes a Simulator.

    Args:
      cluster: The devices and links.
      cost_model: Seconds of each op; by default `calibrated_costs.of`.
      threads: Number of placements that are simulated in parallel. None means
        one for each core that this process may use.

    Raises:
      ValueError: `threads` is not positive.
    """
    if threads is not None and threads < 1:
      raise ValueError(f'threads is {threads}; give 1 or more.')
    self.cluster = cluster
    self.cost_model = cost_model or calibrated_costs.of(cluster)
    self.threads = threads or cores.own()
    self._prepared: weakref.WeakKeyDictionary[
        op_graph.OpGraph,
        native_simulator.PreparedGraph] = weakref.WeakKeyDictionary()
    self._figures: weakref.WeakKeyDictionary[op_graph.OpGraph, dict[
        str, np.ndarray]] = weakref.WeakKeyDictionary()
    self._seconds: weakref.WeakKeyDictionary[
        op_graph.OpGraph, np.ndarray] = weakref.WeakKeyDictionary()
    self._orderable: weakref.WeakKeyDictionary[
        op_graph.OpGraph, np.ndarray] = weakref.WeakKeyDictionary()
    self._lock = threading.RLock()

  def op_seconds(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N, D], seconds of ops by the cost model; read-only."""
    return self._kept(
        self._seconds, graph, lambda: _read_only(
            np.array(self.cost_model.op_seconds(graph, self.cluster), float)))

  def costs(self, graph: op_graph.OpGraph) -> cost_model_lib.CostModel:
    """See `evaluator.Evaluator`; the same for all graphs."""
    del graph
    return self.cost_model

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator.Evaluation:
    """Prices one placement; see `evaluator.Evaluator`.

    Raises:
      ValueError: the placement is on another cluster.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    arguments.check_cluster(placement, self.cluster, 'simulator')
    if placement.devices.shape == (graph.num_ops,):
      prices = self.price(graph, placement.devices[None], placement.priorities)
      if np.isfinite(prices.seconds[0]):
        peaks = prices.peak_bytes[0]
        return evaluator.Evaluation(float(prices.seconds[0]),
                                    tuple(peaks.tolist()),
                                    shortage.violations(self.cluster, peaks),
                                    simulated=True)
    return evaluator.Evaluation.broken(placement.violations(graph),
                                       self.cluster, simulated=True)

  def price(self, graph: op_graph.OpGraph, devices: np.ndarray,
            priorities: np.ndarray | None = None,
            ceiling_s: evaluator.Ceiling = math.inf) -> evaluator.Prices:
    """Prices K placements, int [K, N]; see `evaluator.Evaluator`.

    A placement that breaks a rule of the graph takes infinitely long. The
    simulation stops when the step is known to be above its ceiling (see
    `price_groups`).

    Raises:
      ValueError: an array has another shape or type, or a priority or a ceiling
        is no number.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    devices = arguments.checked_devices(graph, devices, 2)
    priorities = arguments.checked_priorities(graph, priorities, devices.shape)
    return self._prices(graph, devices, priorities, None, ceiling_s)

  def price_in_order(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      priorities: np.ndarray,
      ceiling_s: evaluator.Ceiling = math.inf) -> evaluator.Prices:
    """Prices K placements, int [K, N], in order; see `evaluator.Evaluator`.

    On each asynchronous device an op is dispatched after the op that priorities
    start before it, if control edges may join the two (`orderable`). These
    edges cost nothing. If a step with priorities alone is above its ceiling,
    that step is the price.

    Raises:
      ValueError: an array has another shape or type, or a priority or a ceiling
        is no number.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    devices = arguments.checked_devices(graph, devices, 2)
    order = arguments.checked_priorities(graph, priorities, devices.shape)
    return self._prices(graph, devices, order, self.orderable(graph), ceiling_s)

  def _prices(self, graph: op_graph.OpGraph, devices: np.ndarray,
              priorities: np.ndarray | None, orderable_ops: np.ndarray | None,
              ceiling_s: evaluator.Ceiling) -> evaluator.Prices:
    """Prices placements given by arrays that have been checked."""
    ceilings_s = native_simulator.ceilings(ceiling_s, len(devices))
    prices = evaluator.Prices.from_peaks(
        *self._prepare(graph).run(devices, priorities, self.threads,
                                  orderable_ops, ceilings_s),
        self.cluster.pool_bytes)
    # The memory of a step that stopped at its ceiling is not known.
    return dataclasses.replace(
        prices, valid=prices.valid & (prices.seconds <= ceilings_s))

  def price_groups(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      ceiling_s: evaluator.Ceiling | None = math.inf) -> evaluator.Prices:
    """See `evaluator.Evaluator`; without ceilings if `ceiling_s` is None."""
    return self.price(graph,
                      np.asarray(devices)[:, graph.groups],
                      ceiling_s=math.inf if ceiling_s is None else ceiling_s)

  def orderable(self, graph: op_graph.OpGraph) -> np.ndarray:
    """bool [N], see `orderable.orderable`; read-only."""
    return self._kept(self._orderable, graph,
                      lambda: _read_only(orderable.orderable(graph)))

  def schedule(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> schedule_lib.Schedule:
    """The events of the simulated step.

    Raises:
      ValueError: the placement is on another cluster, does not have one device
        per op, or breaks a rule of the graph.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    arguments.check_cluster(placement, self.cluster, 'simulator')
    devices = arguments.checked_devices(graph, placement.devices, 1)
    result = self._prepare(graph).schedule(
        devices,
        arguments.checked_priorities(graph, placement.priorities,
                                     devices.shape))
    if result is None:
      first = placement.violations(graph)[0].message
      raise ValueError(f'This placement has no schedule: {first}.')
    return result

  def _prepare(self, graph: op_graph.OpGraph) -> native_simulator.PreparedGraph:
    return self._kept(
        self._prepared, graph,
        lambda: native_simulator.PreparedGraph(self.layout(graph)))

  def _kept(self, store: weakref.WeakKeyDictionary[op_graph.OpGraph, _T],
            graph: op_graph.OpGraph, make: Callable[[], _T]) -> _T:
    """What the store keeps for a graph; `make` makes it at the first call."""
    with self._lock:
      item = store.get(graph)
      if item is None:
        item = store[graph] = make()
      return item

  def layout(self, graph: op_graph.OpGraph) -> native_simulator.SimulatorLayout:
    """The graph on the cluster with its costs, without added control edges.

    Raises:
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    figures = self._kept(self._figures, graph, lambda: self._figures_of(graph))
    return native_simulator.SimulatorLayout(
        graph, self.cluster, **figures,
        contention=self.cost_model.contention(self.cluster),
        card_shares=arguments.card_shares(self.cost_model, graph, self.cluster,
                                          figures['seconds']),
        launches=self.cost_model.launches(graph),
        host_work=self.cost_model.host_work(graph), control_edges=np.zeros(
            (0, 2), np.int32))

  def _figures_of(self, graph: op_graph.OpGraph) -> dict[str, np.ndarray]:
    """Fields of a `SimulatorLayout` that depend on the costs of the graph."""
    alive = graph.executions > 0
    seconds = self.op_seconds(graph)
    self._check_costs(graph, seconds, 's')
    workspace = np.asarray(self.cost_model.workspace_bytes(graph, self.cluster),
                           np.int64)
    self._check_costs(graph, workspace, 'bytes of workspace')
    return {
        'tensor_bytes': graph.tensor_bytes * alive[graph.tensor_ops],
        'aliases': aliases(graph) | graph.constants,
        'resident_bytes': graph.resident_bytes,
        'allowed': constraints.allowed_devices(graph, self.cluster),
        'seconds': seconds, 'workspace_bytes': workspace * alive[:, None]
    }

  def _check_costs(self, graph: op_graph.OpGraph, costs: np.ndarray,
                   unit: str) -> None:
    shape = graph.num_ops, self.cluster.num_devices
    if costs.shape != shape:
      raise ValueError(f'The cost model gave {costs.shape}, not {shape}.')
    wrong = np.argwhere(~(np.isfinite(costs) & (costs >= 0)))
    if wrong.size:
      op, device = wrong[0]
      raise ValueError(
          f'The cost model charges {costs[op, device]} {unit} for '
          f'"{graph.label(op)}" on {self.cluster.devices[device].short_name}.')


def _read_only(array: np.ndarray) -> np.ndarray:
  array.setflags(write=False)
  return array


def aliases(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], ops that run and pass on the buffer of their first input.

  The `Enter` of a loop that has no data input makes a buffer of its own.
  """
  hand_on = graph.where_type(op_kinds.ALIASES.__contains__)
  enters = graph.where_type(op_kinds.ENTERS.__contains__)
  enters[graph.edges[graph.edge_tensors >= 0, 1]] = False
  return hand_on & ~enters & (graph.executions > 0)
