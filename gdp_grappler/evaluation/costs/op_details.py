"""Details that change the seconds of an op, besides type, FLOPs and bytes."""

from __future__ import annotations

import dataclasses
from typing import Iterator, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import type_rates
from gdp_grappler.evaluation.costs import op_families
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds

# An op on a GPU whose kernel works on the host counts as a mere visit of the
# executor if its traffic in bytes is at most this. A CPU moves 16 KiB in about
# the time of a visit.
_VISIT_BYTES = 1 << 14


@dataclasses.dataclass(frozen=True, eq=False)
class OpDetails:
  """Details of M ops.

  Attributes:
    rounds: float64 [M], see `OpGraph.rounds`.
    element_types: str [M], see `OpGraph.element_types`.
    winograd_shares: float64 [M], see `OpGraph.winograd_by_name`.
    streamed_bytes: float64 [M], traffic of scatters that clears or copies their
      outputs (`op_families.streamed_outputs`).
    works_on_host: bool [M], see `OpGraph.host_ops`.
  """

  rounds: np.ndarray
  element_types: np.ndarray
  winograd_shares: np.ndarray
  streamed_bytes: np.ndarray
  works_on_host: np.ndarray

  def of_rows(self, rows: np.ndarray) -> OpDetails:
    """The details of some of the ops, given by their indices."""
    return OpDetails(self.rounds[rows], self.element_types[rows],
                     self.winograd_shares[rows], self.streamed_bytes[rows],
                     self.works_on_host[rows])

  def as_calibrated(self) -> OpDetails:
    """The details without those that the measured sizes of a type contain."""
    nothing = np.zeros(len(self.rounds))
    return dataclasses.replace(self, winograd_shares=nothing,
                               streamed_bytes=nothing)


def of(graph: op_graph.OpGraph) -> OpDetails:
  """The details of the ops of a graph."""
  outputs = {t: op_families.streamed_outputs(t) for t in set(graph.op_types)}
  times = np.array([outputs[t] for t in graph.op_types], float)
  return OpDetails(graph.rounds, graph.element_types, graph.winograd_shares,
                   np.minimum(times * graph.output_bytes, graph.io_bytes),
                   graph.works_on_host)


def plain(count: int) -> OpDetails:
  """The details of ops of float32 whose kernels run one time."""
  return OpDetails(np.ones(count), np.full(count, 'float32'), np.zeros(count),
                   np.zeros(count), np.zeros(count, bool))


def launch_nothing(op_types: Sequence[str], io_bytes: np.ndarray,
                   works_on_host: np.ndarray,
                   devices: Sequence[cluster_lib.Device]) -> np.ndarray:
  """bool [M, D], ops that launch no kernel: the executor only visits them.

  Args:
    op_types: [M]
    io_bytes: [M]
    works_on_host: bool [M], see `OpGraph.host_ops`.
    devices: [D]
  """
  no_kernel = np.fromiter((t in op_kinds.NO_KERNEL for t in op_types), bool,
                          len(op_types))
  small = works_on_host & (io_bytes <= _VISIT_BYTES)
  is_gpu = np.array([d.type == 'GPU' for d in devices], bool)
  return no_kernel[:, None] | (small[:, None] & is_gpu)


def take_hosts_seconds(seconds: np.ndarray, works_on_host: np.ndarray,
                       idle: np.ndarray,
                       devices: Sequence[cluster_lib.Device]) -> None:
  """Gives ops on GPUs whose kernels work on the host the seconds of its CPU.

  Args:
    seconds: [M, D], overwritten where an op on a GPU computes on its host. If
      the host's CPU is not among the devices, the seconds stay.
    works_on_host: bool [M], see `OpGraph.host_ops`.
    idle: bool [M, D], `launch_nothing`.
    devices: [D]
  """
  for gpu, cpu in _cpus_of_gpus(devices):
    rows = works_on_host & ~idle[:, gpu]
    seconds[rows, gpu] = seconds[rows, cpu]


def leave_gpus(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], ops that, placed on a GPU, work on its host.

  TensorFlow copies an input of such an op to the memory of the host, and an
  output back, by pairs of sends and receives (`EnsureMemoryTypes` in
  tensorflow/core/common_runtime/memory_types.cc). A thread of the host computes
  the op, and the GPU goes on meanwhile. So such an op counts as if it were on
  the CPU of the host. Ops with small tensors count as a visit of the executor.
  """
  return graph.works_on_host & (graph.io_bytes > _VISIT_BYTES)


def working_devices(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                    placed: np.ndarray) -> np.ndarray:
  """int [..., N], devices on which ops work; see `leave_gpus`.

  Args:
    graph: N ops.
    cluster: The devices.
    placed: int [..., N], devices on which ops are placed.
  """
  return np.where(leave_gpus(graph), hosts(cluster.devices)[placed], placed)


def tensor_places(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                  devices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Where tensors are made and read, int [E] each, as indices of devices.

  An edge needs a transfer if its two places differ. A place is the CPU of the
  host if an op on a GPU has the tensor in the memory of its host.

  Args:
    graph: N ops, E edges.
    cluster: The devices.
    devices: int [N], result of `working_devices`.
  """
  cpus, tensors = hosts(cluster.devices), graph.edge_tensors
  source, target = devices[graph.edges.T]
  made_on_host = np.append(graph.made_on_host, False)[tensors]
  return (np.where(made_on_host, cpus[source],
                   source), np.where(graph.read_on_host, cpus[target], target))


def hosts(devices: Sequence[cluster_lib.Device]) -> np.ndarray:
  """int [D], for each GPU the CPU of its host; else the device itself."""
  result = np.arange(len(devices))
  for gpu, cpu in _cpus_of_gpus(devices):
    result[gpu] = cpu
  return result


def _cpus_of_gpus(
    devices: Sequence[cluster_lib.Device]) -> Iterator[tuple[int, int]]:
  """Indices of each GPU and the CPU of its host, if the CPU is a device."""
  cpus = {
      cluster_lib.host(d.name): column for column, d in enumerate(devices)
      if d.type == 'CPU' and not d.asynchronous
  }
  for column, device in enumerate(devices):
    cpu = cpus.get(cluster_lib.host(device.name))
    if device.type == 'GPU' and cpu is not None:
      yield column, cpu


def rate_factors(op_types: Sequence[str], details: OpDetails,
                 devices: Sequence[cluster_lib.Device]) -> np.ndarray:
  """float64 [M, D], arithmetic rate of ops, as a multiple of float32's rate.

  Args:
    op_types: [M]
    details: Of the M ops.
    devices: [D]
  """
  dense = {t for t in set(op_types) if op_families.family(t).by_type}
  by_type = np.fromiter((t in dense for t in op_types), bool, len(op_types))
  result = np.ones((len(op_types), len(devices)))
  for name in op_graph.ELEMENT_TYPES:
    result[by_type & (details.element_types == name)] = [
        type_rates.rate(d, name) for d in devices
    ]
  # cuDNN also takes Winograd's algorithm for float16, in float32 arithmetic.
  counts = np.isin(details.element_types, ('float32', 'float16'))
  shares = np.where(counts, details.winograd_shares, 0)[:, None]
  rates = np.array([type_rates.rate(d, type_rates.WINOGRAD) for d in devices])
  shortened = 1 / (1 - shares * (1 - 1 / rates))
  return np.where(shares > 0, np.maximum(result, shortened), result)
