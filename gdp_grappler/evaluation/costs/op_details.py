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
    works_on_host: bool [M], see `OpGraph.host_ops`.
  """

  rounds: np.ndarray
  element_types: np.ndarray
  works_on_host: np.ndarray

  def of_rows(self, rows: np.ndarray) -> OpDetails:
    """The details of some of the ops, given by their indices."""
    return OpDetails(self.rounds[rows], self.element_types[rows],
                     self.works_on_host[rows])


def of(graph: op_graph.OpGraph) -> OpDetails:
  """The details of the ops of a graph."""
  return OpDetails(graph.rounds, graph.element_types, graph.works_on_host)


def plain(count: int) -> OpDetails:
  """The details of ops of float32 whose kernels run one time."""
  return OpDetails(np.ones(count), np.full(count, 'float32'),
                   np.zeros(count, bool))


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


def host_copies_s(graph: op_graph.OpGraph,
                  cluster: cluster_lib.Cluster) -> np.ndarray:
  """float64 [N, D], seconds of copies for ops on GPUs that work on the host.

  TensorFlow copies an input of such an op to the memory of the host if another
  op of the GPU made it, and an output back if another op reads it
  (`EnsureMemoryTypes` in tensorflow/core/common_runtime/memory_types.cc). Ops
  that count as a mere visit have none: their tensors are small. A tensor from
  or to an op on the host, such as a fed value, stays in the host's memory.

  Args:
    graph: N ops.
    cluster: D devices.
  """
  result = np.zeros((graph.num_ops, cluster.num_devices))
  on_host = graph.works_on_host
  large = on_host & (graph.io_bytes > _VISIT_BYTES)
  if not large.any():
    return result
  edges, tensors = graph.edges, graph.edge_tensors
  crossing = (tensors >= 0) & (on_host[edges[:, 0]] != on_host[edges[:, 1]])
  crossing &= _may_be_on_gpus(graph)[edges].all(axis=1)
  to_host = crossing & large[edges[:, 1]]
  back = crossing & large[edges[:, 0]]
  # An op that reads a tensor twice copies it once. An output is copied back
  # once, for all of its readers.
  read = np.unique(np.stack([edges[to_host, 1], tensors[to_host]], axis=1),
                   axis=0)
  made = np.unique(np.stack([edges[back, 0], tensors[back]], axis=1), axis=0)
  read_bytes, made_bytes = (np.bincount(ops, graph.tensor_bytes[values],
                                        graph.num_ops)
                            for ops, values in (read.T, made.T))
  bandwidth = cluster.link_arrays[1]
  for gpu, cpu in _cpus_of_gpus(cluster.devices):
    result[:, gpu] = (read_bytes / bandwidth[gpu, cpu]
                      + made_bytes / bandwidth[cpu, gpu])
  return result


def _may_be_on_gpus(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], ops that neither a kernel nor a pin keeps on a CPU."""
  result = graph.allowed_types[:, op_graph.DEVICE_TYPES.index('GPU')].copy()
  for pin, ops in graph.pinned_ops.items():
    result[ops] &= cluster_lib.device_type(pin) != 'CPU'
  return result


def _cpus_of_gpus(
    devices: Sequence[cluster_lib.Device]) -> Iterator[tuple[int, int]]:
  """Indices of each GPU and the CPU of its host, if the CPU is a device."""
  cpus = {
      cluster_lib.host(d.name): column for column, d in enumerate(devices)
      if d.type == 'CPU'
  }
  for column, device in enumerate(devices):
    cpu = cpus.get(cluster_lib.host(device.name))
    if device.type == 'GPU' and cpu is not None:
      yield column, cpu


def type_factors(op_types: Sequence[str], element_types: np.ndarray,
                 devices: Sequence[cluster_lib.Device]) -> np.ndarray:
  """float64 [M, D], arithmetic rate of ops, as a multiple of float32's rate.

  Args:
    op_types: [M]
    element_types: str [M], see `OpGraph.element_types`.
    devices: [D]
  """
  dense = {t for t in set(op_types) if op_families.family(t).by_type}
  by_type = np.fromiter((t in dense for t in op_types), bool, len(op_types))
  result = np.ones((len(op_types), len(devices)))
  for name in op_graph.ELEMENT_TYPES:
    result[by_type & (element_types == name)] = [
        type_rates.rate(d, name) for d in devices
    ]
  return result
