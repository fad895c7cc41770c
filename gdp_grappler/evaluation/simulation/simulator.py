"""The price of a placement by event-driven simulation.

The rules are those of TensorFlow's executor; docs/simulator.md introduces them.
First those of devices that are not asynchronous, such as CPUs:

* Ops. An op starts when all its inputs, data and control, are on its device and
  its compute unit has a free slot. A unit has as many slots as the largest
  `slots` of its devices; devices cut from one physical device share a unit.
* Order. Waiting ops start by decreasing priority if the placement has
  priorities. Ops of one priority start in the order in which they became ready;
  those of one moment start in topological order.
* Sends. When an op ends, each of its tensors is sent once to every other device
  that consumes it: tensors in the order of the graph, then devices in the order
  of the first consumer. Ops that end at one moment send in topological order.
* Transfers. A transfer takes the link's latency plus bytes / bandwidth, and
  occupies all channels of the link that long. A channel serves in the order of
  requests. Transfers run beside compute.
* Messages. A control edge is a message, sent once per op and device. Messages
  and empty tensors take the latency only, and occupy no channel.
* Work for transfers. A device without copy engines computes `copy_s` plus bytes
  / `copy_bytes_per_s` for each transfer or message. The sender does so when the
  op has ended, and requests the transfer afterwards. The receiver does so when
  the transfer has ended, and the tensor arrives afterwards. This work fills a
  slot, and comes before any waiting op. Work that fell due first goes first; of
  one moment, that of the transfer whose op ended first. If such work ends when
  ops end, the requests of the ops come first.
* Memory. A tensor occupies its producer's memory from the producer's start
  until its last consumer there and its last transfer have ended. A received
  copy does so from the transfer's start until its last consumer has ended.
  Workspace is there while its op runs, parameters throughout. What ends at one
  moment is gone before what starts then comes.
* Aliases. An op that aliases (`ReadVariableOp`, `Identity`, `Reshape`, ...)
  occupies nothing. It keeps the buffer of its first data input alive.
* Loops and conditions. A while loop is not unrolled: an op runs all its
  executions at one go. An op of no executions, in a branch that is not taken,
  produces empty tensors. A `Merge` waits for both branches; the dead one takes
  no time to compute.
* Memory buses. Compute units may share a bus (`cost_model.Contention`). An op,
  or work for a transfer, takes `shares` of its device longer for each other
  unit of the bus that is busy at its start: with something that started before
  and ends later.
* A step begins with `Cluster.step_s`, in which nothing else happens.

A device may be asynchronous (`Device.launch`), as GPUs are: for the executor an
op is done when it is on the device's compute stream. There:

* Threads. Each thread dispatches items one after the other, from a first in,
  first out queue of its own. One thread has all ops that wait for nothing, in
  topological order. Every op that became ready because something arrived from
  another device gets a new thread. Threads of one moment act in the order in
  which they began.
* Launches. An op of some duration launches kernels. A thread takes up the op
  and prepares it for `dispatch_s` less `lock_s`. Then it waits for the lock of
  the driver's context and holds the lock for `lock_s`, and as long again for
  each further kernel. An op that runs several times takes as many times as
  long. TensorFlow's work beyond a bare launch (`CostModel.host_work`) comes
  before the lock. An op of no duration takes `visit_s` instead.
* Locks. A lock serves in the order in which threads took up what needs it.
  Threads that launch on one device do so one after the other, in the same
  order: no two threads were seen to feed a stream faster than one.
* Kernels. A dispatched op starts when all that was dispatched to its compute
  unit before has ended and `gap_s` have passed since. It needs no slot.
* Outputs are handed on at dispatch. What became ready joins the end of the same
  queue. So does what has to be sent: tensors in the order of the graph, in each
  the consumers, then control edges. So dispatch is breadth first, and runs far
  ahead of the stream.
* Cut cards. Asynchronous devices that share a context are cut from one card,
  which takes turns between its streams. The gap before a kernel is longer by
  `switch_s` for each other stream with work when the kernel is taken up, and so
  is the gap between the runs of an op. Streams are the compute streams of the
  other devices, and those on which a device of the context copies to
  asynchronous ones. A kernel gets what those before it have left of the card
  (`card_shares`).
* Issue. A transfer from or to such a device waits in the queue of a thread. At
  the head of the queue the thread issues it, in `copy_dispatch_s`. The thread
  holds the lock in the last part of this time, the share that `lock_s` has of
  `dispatch_s`. A message is issued when it is at the head for the second time:
  TensorFlow makes an empty tensor of it first, which takes `visit_s`.
* Issue from a synchronous device. The later of two threads issues: the one that
  sends, or the receiver's thread of ops that wait for nothing, which asks. As
  long as this thread has not taken up the last of its ops, what is sent joins
  the end of its queue. Later another thread issues, `copy_dispatch_s` after the
  op has ended, and a message needs no tensor.
* Copy streams. A device has three: to asynchronous devices, to others, and from
  others. Each takes copies one after the other in the order of issue, and a
  blocked copy holds up the rest. Messages and empty tensors only wait.
* Waiting. A copy waits for its issue, and for both compute streams as filled
  when its thread took it up: for the sender's because the result must be there,
  for the receiver's because the memory must be free. Messages and empty tensors
  wait for the receiver only if they come from a synchronous device. Then the
  copy is requested of the link.
* Arrival. A copy arrives, and its sender's memory is let go of, `callback_s`
  after its end if the event manager finds it done at the first look. That is so
  if at most twice the link's latency has passed since the issue. Else the event
  manager looks again and again, and finds the copy `poll_s` later, on average.
  These times are the asynchronous sender's, or else the receiver's.
* Memory is the allocator's. An op's outputs, and received copies, are there
  from when a thread takes them up. An op lets go of its inputs and workspace
  when it has been dispatched: what takes their place comes later on the stream.
* Such devices neither slow a bus nor are slowed.

Priorities do not exist in TensorFlow, and dispatch leaves nothing to choose.
With priorities an asynchronous device runs op by op as a synchronous one, with
copies as above: control edges bring this at best. `ordering` finds edges, and
prices them without priorities. `price_in_order` is between the two: dispatch
keeps the order in which priorities start ops, and runs ahead as ever.

Where several things happen at one moment, ops end first, then work for
transfers, then transfers; then copies arrive in the order of their requests;
then threads dispatch. The step ends with the last stream and the last thread.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import weakref

import numpy as np

from gdp_grappler import cores
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import shortage
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation.costs import calibrated_costs
from gdp_grappler.evaluation.costs import cost_model as cost_model_lib
from gdp_grappler.evaluation.simulation import arguments
from gdp_grappler.evaluation.simulation import native_simulator
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.legality import orderable


class Simulator(evaluator.Evaluator):
  """Prices placements on one cluster; deterministic.

  What does not depend on the placement is prepared once per graph and kept as
  long as the graph lives. May be used from several threads at once.

  Attributes:
    cluster: The devices that placements index.
    cost_model: Seconds of each op.
    threads: How many placements are simulated side by side.
  """

  simulated = True

  def __init__(self, cluster: cluster_lib.Cluster,
               cost_model: cost_model_lib.CostModel | None = None,
               threads: int | None = None) -> None:
    """Initializes a Simulator.

    Args:
      cluster: The devices.
      cost_model: Seconds of each op; by default `calibrated_costs.of`.
      threads: By default one for each core that this process may use.

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
    """float64 [N, D], as the cost model charges them; read-only."""
    with self._lock:
      seconds = self._seconds.get(graph)
      if seconds is None:
        seconds = np.array(self.cost_model.op_seconds(graph, self.cluster),
                           np.float64)
        seconds.setflags(write=False)
        self._seconds[graph] = seconds
      return seconds

  def costs(self, graph: op_graph.OpGraph) -> cost_model_lib.CostModel:
    """See `evaluator.Evaluator`; the same of all graphs."""
    del graph
    return self.cost_model

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator.Evaluation:
    """Prices one placement; see `evaluator.Evaluator`.

    Raises:
      ValueError: the placement is on another cluster.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    self._check_cluster(placement)
    if placement.devices.shape != (graph.num_ops,):
      return self._broken(graph, placement)
    prices = self.price(graph, placement.devices[None], placement.priorities)
    if np.isinf(prices.seconds[0]):
      return self._broken(graph, placement)
    peaks = prices.peak_bytes[0]
    return evaluator.Evaluation(float(prices.seconds[0]), tuple(peaks.tolist()),
                                shortage.violations(self.cluster, peaks),
                                simulated=True)

  def price(self, graph: op_graph.OpGraph, devices: np.ndarray,
            priorities: np.ndarray | None = None,
            ceiling_s: evaluator.Ceiling = math.inf) -> evaluator.Prices:
    """Prices K placements, int [K, N]; see `evaluator.Evaluator`.

    What breaks a rule of the graph takes infinitely long.

    The simulation of a step ends when it is known to be above its ceiling, as
    of `price_groups`.

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

    On each asynchronous device an op is dispatched after the one that
    priorities start before it, as far as control edges may join them
    (`orderable`); these edges cost nothing. What takes longer than its ceiling
    with priorities alone is said to take longer in order, too.

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
    """Of checked arrays."""
    ceilings_s = native_simulator.ceilings(ceiling_s, len(devices))
    prices = evaluator.Prices.from_peaks(
        *self._prepare(graph).run(devices, priorities, self.threads,
                                  orderable_ops, ceilings_s),
        self.cluster.pool_bytes)
    # The memory of a step that stopped at its ceiling is not known.
    return dataclasses.replace(
        prices, valid=prices.valid & (prices.seconds <= ceilings_s))

  def price_groups(self, graph: op_graph.OpGraph, devices: np.ndarray,
                   ceiling_s: evaluator.Ceiling | None = math.inf,
                   priorities: np.ndarray | None = None) -> evaluator.Prices:
    """See `evaluator.Evaluator`; the best is priced in full."""
    return self.price(graph,
                      np.asarray(devices)[:, graph.groups], priorities,
                      ceiling_s=math.inf if ceiling_s is None else ceiling_s)

  def orderable(self, graph: op_graph.OpGraph) -> np.ndarray:
    """bool [N], see `orderable.orderable`; read-only."""
    with self._lock:
      may = self._orderable.get(graph)
      if may is None:
        may = orderable.orderable(graph)
        may.setflags(write=False)
        self._orderable[graph] = may
      return may

  def schedule(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> schedule_lib.Schedule:
    """Everything that happens in the simulated step.

    Raises:
      ValueError: the placement is on another cluster, has not one device per
        op, or breaks a rule of the graph.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    self._check_cluster(placement)
    devices = arguments.checked_devices(graph, placement.devices, 1)
    result = self._prepare(graph).schedule(
        devices,
        arguments.checked_priorities(graph, placement.priorities,
                                     devices.shape))
    if result is None:
      first = placement.violations(graph)[0].message
      raise ValueError(f'This placement has no schedule: {first}.')
    return result

  def _check_cluster(self, placement: placement_lib.Placement) -> None:
    if placement.cluster is not self.cluster and (placement.cluster
                                                  != self.cluster):
      raise ValueError(
          f'The placement is on cluster "{placement.cluster.name}", the '
          f'simulator is for "{self.cluster.name}".')

  def _broken(self, graph: op_graph.OpGraph,
              placement: placement_lib.Placement) -> evaluator.Evaluation:
    return evaluator.Evaluation(float('inf'),
                                (0,) * len(self.cluster.pool_bytes),
                                placement.violations(graph), simulated=True)

  def _prepare(self, graph: op_graph.OpGraph) -> native_simulator.PreparedGraph:
    with self._lock:
      prepared = self._prepared.get(graph)
      if prepared is None:
        prepared = self._prepared[graph] = native_simulator.PreparedGraph(
            self.layout(graph))
      return prepared

  def layout(self, graph: op_graph.OpGraph) -> native_simulator.SimulatorLayout:
    """The graph on the cluster with its costs, without further edges.

    Raises:
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    with self._lock:
      figures = self._figures.get(graph)
      if figures is None:
        figures = self._figures[graph] = self._figures_of(graph)
    return native_simulator.SimulatorLayout(
        graph, self.cluster, **figures,
        contention=self.cost_model.contention(self.cluster),
        card_shares=arguments.card_shares(self.cost_model, graph, self.cluster,
                                          figures['seconds']),
        launches=self.cost_model.launches(graph),
        host_work=self.cost_model.host_work(graph), control_edges=np.zeros(
            (0, 2), np.int32))

  def _figures_of(self, graph: op_graph.OpGraph) -> dict[str, np.ndarray]:
    """Of a `Layout`, what the cluster and the cost model say of the graph."""
    alive = graph.executions > 0
    seconds = self.op_seconds(graph)
    self._check_costs(graph, seconds, 's')
    workspace = np.asarray(self.cost_model.workspace_bytes(graph, self.cluster),
                           np.int64)
    self._check_costs(graph, workspace, 'bytes of workspace')
    return {
        'tensor_bytes': graph.tensor_bytes * alive[graph.tensor_ops],
        'aliases': aliases(graph),
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


def aliases(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], ops that run and hand on the buffer of their first input.

  A loop that nothing is handed to begins with a list of its own.
  """
  hand_on = graph.where_type(op_kinds.ALIASES.__contains__)
  enters = graph.where_type(op_kinds.ENTERS.__contains__)
  enters[graph.edges[graph.edge_tensors >= 0, 1]] = False
  return hand_on & ~enters & (graph.executions > 0)
