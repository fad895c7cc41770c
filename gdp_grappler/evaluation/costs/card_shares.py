"""The share of a card that an op's kernel can use while it runs.

A card that is cut into several logical devices runs kernels of their streams in
parallel, as far as the kernels leave room for each other. The share of a kernel
is the largest of three ratios:

* threads: threads of the kernel, over threads that the multiprocessors hold
  (`Device.resident_threads`). TensorFlow launches one thread for each element
  of the op's output, up to what fills the card (`GetGpuLaunchConfig`,
  tensorflow/core/util/gpu_launch_config.h). In a product or a convolution one
  block of threads makes a tile of 128 x 128 outputs, and a multiprocessor holds
  one such block: `_OUTPUTS_PER_THREAD` (NVIDIA, "Matrix Multiplication
  Background User's Guide", section "Dimension Quantization Effects").
* arithmetic: FLOPs of the op, over FLOPs that the card could do in the seconds
  that the op takes alone.
* bandwidth: bytes that the op reads and writes, over bytes that the card could
  move in these seconds.

Kernels are served in the order in which they were enqueued on the card's
streams. A kernel gets the share of the card that earlier kernels leave free. If
that is less than the kernel can use, the kernel slows down in proportion; if
nothing is free, it waits. The hardware hands out blocks in the same way (Xu et
al., "Warped-Slicer", ISCA 2016, section 2: "leftover policy").

So a kernel that uses the whole bandwidth leaves nothing to other kernels, even
if it has few threads. A kernel that is short, or waits for latency, uses a
small share. The model ignores that kernels evict each other's data from caches.
No figure was fitted to a card.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.costs import op_families
from gdp_grappler.graph import op_graph

# Outputs that a thread of a product's kernel makes: 128 x 128, divided by the
# 2048 threads that a multiprocessor holds. A thread of other kernels makes one.
_OUTPUTS_PER_THREAD = 8
_WARP = 32  # Threads of a warp.
_TILED = ('matmul', 'batch_matmul', 'convolution', 'convolution_gradient')


def of(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
       seconds: np.ndarray) -> np.ndarray:
  """Shares of the card that ops can use while they run.

  Args:
    graph: N ops.
    cluster: D devices.
    seconds: [N, D], seconds of each op in a step on a card of its own.

  Returns:
    float64 [N, D], above 0 and at most 1. It is 1 on devices that do not share
    their card, and on devices whose number of threads is unknown.
  """
  result = np.ones(seconds.shape)
  runs = np.maximum(graph.executions, 1)
  tiled = graph.where_type(lambda kind: op_families.family(kind).name in _TILED)
  outputs = (graph.output_bytes / graph.element_bytes
             / np.where(tiled, _OUTPUTS_PER_THREAD, 1))
  factors = op_details.rate_factors(graph.op_types, op_details.of(graph),
                                    cluster.devices)
  for column in np.flatnonzero(cluster.cut_cards >= 0):
    device = cluster.devices[column]
    if not device.resident_threads:
      continue
    once_s = np.maximum(seconds[:, column] / runs, 1e-12)
    flops_per_s = device.peak_flops * device.efficiency * factors[:, column]
    shares = np.stack([
        outputs / device.resident_threads, graph.flops / (flops_per_s * once_s),
        graph.io_bytes / (device.bandwidth_bytes_per_s * once_s)
    ])
    # No kernel is smaller than a warp.
    least = min(1., _WARP / device.resident_threads)
    result[:, column] = np.clip(shares.max(0), least, 1)
  return result
