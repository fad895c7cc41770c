"""Details that change the seconds of an op, besides type, FLOPs and bytes."""

from __future__ import annotations

import dataclasses
from typing import Sequence

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
  cpus = {
      cluster_lib.host(d.name): column for column, d in enumerate(devices)
      if d.type == 'CPU'
  }
  for column, device in enumerate(devices):
    cpu = cpus.get(cluster_lib.host(device.name))
    if device.type == 'GPU' and cpu is not None:
      rows = works_on_host & ~idle[:, column]
      seconds[rows, column] = seconds[rows, cpu]


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
