"""What the driver calls the architecture of a cluster's cards.

Grappler asks for it: convolutions in half precision keep the layout that tensor
cores want from compute capability 7.0 on, and some in float32 from 8.0 on
(tensorflow/core/grappler/optimizers/generic_layout_optimizer.cc); more products
are fused from 8.0 on (remapper.cc).
"""

from __future__ import annotations

import re

from gdp_grappler.cluster import cluster as cluster_lib

# By the names of `device_figures.CARDS`: compute capabilities as NVIDIA lists
# them (https://developer.nvidia.com/cuda-gpus), and AMD's LLVM targets.
_ARCHITECTURES = {
    'K40': '3.5', 'P100': '6.0', 'V100': '7.0', 'T4': '7.5', 'A100': '8.0',
    'RTX3090': '8.6', 'A6000': '8.6', 'A10': '8.6', 'A10G': '8.6',
    'MI250X': 'gfx90a', 'H100': '9.0', 'H200': '9.0', 'RTX4090': '8.9',
    'L4': '8.9', 'L40S': '8.9', 'MI300X': 'gfx942', 'B200': '10.0',
    'GB200': '10.0', 'RTX5090': '12.0', 'RTX5080': '12.0', 'RTX5070TI': '12.0',
    'RTX5070': '12.0'
}
# Of cards in a cluster file, which tells no names.
_OTHERS = _ARCHITECTURES['A100']


def of(cluster: cluster_lib.Cluster) -> str:
  """The architecture of the first kind of card, such as '6.0' of P100s.

  Args:
    cluster: Any.

  Returns:
    '' of a cluster without cards.
  """
  if not any(device.type == 'GPU' for device in cluster.devices):
    return ''
  named = (_ARCHITECTURES.get(word)
           for word in re.findall('[A-Z][A-Z0-9]+', cluster.name))
  return next(filter(None, named), _OTHERS)
