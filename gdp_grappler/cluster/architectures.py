"""The architecture of a cluster's cards, as the driver names it.

Grappler's rewrites depend on the architecture. From compute capability 7.0 on,
convolutions in half precision keep the layout of tensor cores; from 8.0 on,
also some in float32
(tensorflow/core/grappler/optimizers/generic_layout_optimizer.cc). From 8.0 on,
more products are fused (remapper.cc).
"""

from __future__ import annotations

import re

from gdp_grappler.cluster import cluster as cluster_lib

# Architectures by the names of `device_figures.CARDS`: NVIDIA's compute
# capabilities (https://developer.nvidia.com/cuda-gpus) and AMD's LLVM targets.
_ARCHITECTURES = {
    'K40': '3.5', 'P100': '6.0', 'V100': '7.0', 'T4': '7.5', 'A100': '8.0',
    'RTX3090': '8.6', 'A6000': '8.6', 'A10': '8.6', 'A10G': '8.6',
    'MI250X': 'gfx90a', 'H100': '9.0', 'H200': '9.0', 'RTX4090': '8.9',
    'L4': '8.9', 'L40S': '8.9', 'MI300X': 'gfx942', 'B200': '10.0',
    'GB200': '10.0', 'RTX5090': '12.0', 'RTX5080': '12.0', 'RTX5070TI': '12.0',
    'RTX5070': '12.0'
}
# The assumed architecture if the cluster's name does not name a card.
_OTHERS = _ARCHITECTURES['A100']


def of(cluster: cluster_lib.Cluster) -> str:
  """The architecture of the first card that the cluster's name names.

  Args:
    cluster: Any cluster.

  Returns:
    Such as '6.0' for P100s; '' for a cluster without cards.
  """
  if not any(device.type == 'GPU' for device in cluster.devices):
    return ''
  named = (_ARCHITECTURES.get(word)
           for word in re.findall('[A-Z][A-Z0-9]+', cluster.name))
  return next(filter(None, named), _OTHERS)
