"""Seconds and workspace of each op on each device.

The model is a roofline (Williams et al., "Roofline: an insightful visual
performance model", CACM 2009): an op takes the time of its arithmetic or of its
traffic, whichever is longer, plus the time to launch it. Arithmetic runs at
`peak_flops * efficiency`, the rate of dense kernels on the device, times the
share that the op's family reaches. This rate is that of float32, and dense ops
of other types, and convolutions of float32 by Winograd's algorithm, have
multiples of it (`cluster.type_rates`). Traffic runs at the
memory's bandwidth times the share of the family (`op_families`). On a GPU the
family also limits both rates, and gives seconds in which multipliers are idle.
Each kernel of an op after the first one takes `kernel_s`. Each op that a call
runs on a CPU after the first one takes `Device.launch_s`. FLOPs and bytes come
from Grappler's OpLevelCostEstimator; `graph.op_properties` adds FLOPs of ops
that the estimator does not know. The estimator does not count the launch of an
op, so the roofline adds `Device.launch_s` to each op.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import card_shares
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.costs import op_families
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds

VISIT = 'visit'  # Family of ops that launch no kernel.


@dataclasses.dataclass(frozen=True)
class Roofline(cost_model.CostModel):
  """The roofline, with the constants that belong to no device and no family.

  Attributes:
    visit_s: Seconds of the executor for an op that launches no kernel, on a
      synchronous device. (Asynchronous devices have `Device.visit_s`.)
      `gdp profile` on one core of an AMD EPYC of 2024 finds 0.1 us for loops
      of such ops and 0.4 us for constants and reads of variables.
    kernel_s: Seconds for each further kernel of an op on a GPU. Boyer, "CUDA
      Kernel Overhead", University of Virginia 2009: 334,000 launches per
      second at best.
  """

  visit_s: float = 5e-7
  kernel_s: float = 3e-6

  def op_seconds(self, graph: op_graph.OpGraph,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
    """float64 [N, D], seconds of one step; see `CostModel.op_seconds`."""
    once = self.seconds(graph.op_types, graph.flops, graph.io_bytes,
                        cluster.devices, op_details.of(graph))
    return once * graph.executions[:, None]

  def seconds(self, op_types: Sequence[str], flops: np.ndarray,
              io_bytes: np.ndarray, devices: Sequence[cluster_lib.Device],
              details: op_details.OpDetails | None = None) -> np.ndarray:
    """float64 [M, D], seconds of one execution of M ops on D devices.

    Args:
      op_types: [M]
      flops: [M]
      io_bytes: [M]
      devices: [D]
      details: Of the M ops; None means `op_details.plain`.
    """
    families, rows = _families(op_types)
    details = details or op_details.plain(len(op_types))
    factors = op_details.rate_factors(op_types, details, devices)
    idle = op_details.launch_nothing(op_types, io_bytes, details.works_on_host,
                                     devices)
    result = np.empty((len(op_types), len(devices)))
    for column, device in enumerate(devices):
      laws = [_law(f, device) for f in families]
      streaming = _law(op_families.FAMILIES['movement'], device)[2]
      streamed = details.streamed_bytes * (device.type == 'GPU')
      flops_per_s, most_flops_per_s, bytes_per_s, fill_s, kernels = np.array(
          laws).reshape(-1, 5)[rows].T
      factor = factors[:, column]
      # The limit holds for float32. For types of two bytes it is twice as high.
      rate = np.minimum(flops_per_s * factor,
                        most_flops_per_s * np.clip(factor, 1, 2))
      computing_s = flops / rate + (flops > 0) * fill_s
      moving_s = (io_bytes - streamed) / bytes_per_s + streamed / streaming
      further = np.maximum(kernels * details.rounds - 1, 0)
      kernel_s = self.kernel_s if device.type == 'GPU' else device.launch_s
      result[:, column] = (np.maximum(computing_s, moving_s) + device.launch_s
                           + further * kernel_s)
      visit_s = 0 if device.asynchronous else self.visit_s
      result[idle[:, column], column] = visit_s
    op_details.take_hosts_seconds(result, details.works_on_host, idle, devices)
    return result

  def launches(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N], see `CostModel.launches`."""
    families, rows = _families(graph.op_types)
    kernels = np.array([f.kernels for f in families], float)[rows]
    return kernels * graph.rounds * np.maximum(graph.executions, 1)

  def host_work(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N], see `CostModel.host_work`."""
    families, rows = _families(graph.op_types)
    once = np.array([f.host_work for f in families], float)[rows]
    return (once + dispatched_by_calls(graph)) * np.maximum(graph.executions, 1)

  def card_shares(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                  seconds: np.ndarray) -> np.ndarray:
    """float64 [N, D], see `card_shares`."""
    return card_shares.of(graph, cluster, seconds)

  def workspace_bytes(self, graph: op_graph.OpGraph,
                      cluster: cluster_lib.Cluster) -> np.ndarray:
    """int64 [N, D], temporary bytes that each op on each device needs.

    * Convolutions on GPUs: a copy of the filter, and one of the input or of its
      gradient. TensorFlow transposes each filter for cuDNN, computes the
      gradient of an input in a copy, and copies an input that has more padding
      on one side (tensorflow/core/kernels/conv_ops_impl.h and conv_grad_*).
      Scratch of cuDNN's algorithms does not count: if scratch cannot be
      allocated, TensorFlow takes the fastest algorithm without scratch
      (`AllocateScratchOrFallback` in conv_ops_gpu.h).
      On CPUs Eigen unfolds block by block in caches: `gdp profile` finds no
      temporary memory there.
    * Sorts on GPUs: a second copy of keys and values, because each pass of a
      radix sort writes to the other copy (CUB, `DeviceRadixSort`).
    * Everything else: 0.
    """
    first, second = _input_bytes(graph)
    sorts = graph.where_type(lambda kind: family(kind) == 'sort')
    gpu = _convolution_copies(graph, first, second) + np.where(
        sorts, 2 * first, 0)
    columns = [
        gpu if d.type == 'GPU' else np.zeros_like(gpu) for d in cluster.devices
    ]
    return np.stack(columns, 1).astype(np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class OverRoofline(cost_model.CostModel):
  """Base class of cost models that replace some costs of the roofline.

  Attributes:
    base: Roofline for all costs that a subclass does not override.
  """

  base: Roofline = dataclasses.field(default=Roofline(), kw_only=True)

  def launches(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N], the roofline's."""
    return self.base.launches(graph)

  def host_work(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N], the roofline's."""
    return self.base.host_work(graph)

  def card_shares(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                  seconds: np.ndarray) -> np.ndarray:
    """float64 [N, D], the roofline's."""
    return self.base.card_shares(graph, cluster, seconds)

  def workspace_bytes(self, graph: op_graph.OpGraph,
                      cluster: cluster_lib.Cluster) -> np.ndarray:
    """int64 [N, D], the roofline's."""
    return self.base.workspace_bytes(graph, cluster)


def family(op_type: str) -> str:
  """Name of an op's family, or 'visit' if it launches no kernel."""
  return VISIT if op_type in op_kinds.NO_KERNEL else op_families.family(
      op_type).name


def is_convolution(op_type: str) -> bool:
  """Whether an op is a convolution, or the gradient of one."""
  return family(op_type) in ('convolution', 'convolution_gradient')


def dispatched_by_calls(graph: op_graph.OpGraph) -> np.ndarray:
  """float64 [N], ops that the host dispatches for a call beside the call."""
  calls = graph.where_type(lambda kind: family(kind) == 'call')
  return np.where(calls, graph.rounds - 1, 0)


def _law(
    of: op_families.Family,
    device: cluster_lib.Device) -> tuple[float, float, float, float, float]:
  """FLOP/s, their limit, bytes/s, seconds to fill, and number of kernels."""
  compute, bandwidth = of.shares(device.type)
  flops_per_s = device.peak_flops * device.efficiency * compute
  bytes_per_s = device.bandwidth_bytes_per_s * bandwidth
  if device.type != 'GPU':
    # Each op that a call runs has to start, also on a CPU.
    return flops_per_s, np.inf, bytes_per_s, 0., float(of.name == 'call')
  bytes_per_s = min(bytes_per_s, of.most_bytes_per_s)
  return (flops_per_s, of.most_flops_per_s, bytes_per_s, of.fill_s,
          float(of.kernels))


def _families(
    op_types: Sequence[str]) -> tuple[list[op_families.Family], np.ndarray]:
  """Family of each distinct type, and the index of each op's type [M]."""
  index = {t: i for i, t in enumerate(dict.fromkeys(op_types))}
  return ([op_families.family(t) for t in index],
          np.array([index[t] for t in op_types], int))


def _convolution_copies(graph: op_graph.OpGraph, first: np.ndarray,
                        second: np.ndarray) -> np.ndarray:
  """int64 [N], bytes of the input and of the filter of each convolution.

  Args:
    graph: N ops.
    first: [N], bytes of the first input. It is the convolution's input, but for
      the gradient of the latter, which is the op's output.
    second: [N], bytes of the second input. It is the filter, but for the
      gradient of the latter.
  """
  of_input = graph.where_type(lambda kind: 'BackpropInput' in kind)
  of_filter = graph.where_type(lambda kind: 'BackpropFilter' in kind)
  copies = (np.where(of_input, graph.output_bytes, first)
            + np.where(of_filter, graph.output_bytes, second))
  return np.where(graph.where_type(is_convolution), copies, 0)


def _input_bytes(graph: op_graph.OpGraph) -> np.ndarray:
  """int64 [2, N], sizes of the first two data inputs of each op."""
  is_data = graph.edge_tensors >= 0
  targets, tensors = graph.edges[is_data, 1], graph.edge_tensors[is_data]
  order = np.argsort(targets, kind='stable')
  targets, tensors = targets[order], tensors[order]
  numbers = np.arange(len(targets)) - np.searchsorted(targets, targets)
  result = np.zeros((2, graph.num_ops), np.int64)
  first = numbers < 2
  result[numbers[first], targets[first]] = graph.tensor_bytes[tensors[first]]
  return result
