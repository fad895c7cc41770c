"""The clusters of the papers, by name.

GDP (section 4.1) and its successor use 2, 4 or 8 P100 with 16 GB on PCIe and
one Broadwell CPU. Figures:

* P100 PCIe 16 GB: 9.3 TFLOP/s single precision, 732 GB/s (NVIDIA Tesla P100
  data sheet, 2016). `launch_s`: about 5 us per kernel, the order measured for
  TensorFlow's executor on this generation. `efficiency`: cuDNN convolutions
  and large matrix products reach 60 to 80 % of peak; 0.7.
* Broadwell Xeon E5-2690 v4: 14 cores of 2.6 GHz with two AVX2 FMA units,
  32 FLOP per cycle: 1.16 TFLOP/s, 76.8 GB/s (Intel ARK). `efficiency` 0.5.
* PCIe 3.0 x16: 15.75 GB/s on the wire, 12 GB/s for large copies, 10 us each.
"""

from __future__ import annotations

import re

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib

_GIB = 1 << 30
_PCIE_LATENCY_S = 10e-6
_PCIE_BYTES_PER_S = 12e9
_P100 = dict(type='GPU', memory_bytes=16 * _GIB, peak_flops=9.3e12,
             efficiency=0.7, bandwidth_bytes_per_s=732e9, launch_s=5e-6)
_BROADWELL = dict(type='CPU', memory_bytes=256 * _GIB, peak_flops=1.16e12,
                  efficiency=0.5, bandwidth_bytes_per_s=76.8e9, launch_s=2e-6)
NAMES = ('2xP100', '4xP100', '8xP100')


def preset(name: str) -> cluster_lib.Cluster:
  """One of `NAMES`: a CPU and some P100, each on its own PCIe link.

  Raises:
    ClusterError: no such preset.
  """
  match = re.fullmatch(r'([248])xP100', name)
  if not match:
    raise errors.ClusterError(
        f'Unknown cluster "{name}". Presets: {", ".join(NAMES)}; "local" for '
        'the devices of this machine; or the path of a cluster file.')
  devices = [_device('CPU', 0, _BROADWELL)]
  devices += [_device('GPU', i, _P100) for i in range(int(match[1]))]
  return cluster_lib.Cluster(name, tuple(devices), tuple(
      cluster_lib.Link(source.name, target.name, _PCIE_LATENCY_S,
                       _PCIE_BYTES_PER_S, _wires(source, target))
      for source in devices for target in devices if source != target))


def _device(kind, number, figures) -> cluster_lib.Device:
  name = cluster_lib.local_name(kind, number)
  return cluster_lib.Device(name=name, compute=name, memory=name, **figures)


def _wires(source, target) -> tuple[str, ...]:
  """Each GPU has one PCIe link, which carries both directions at once."""
  wires = []
  if source.type == 'GPU':
    wires.append(f'{source.short_name} out')
  if target.type == 'GPU':
    wires.append(f'{target.short_name} in')
  return tuple(wires)
