"""Figures of cards, processors and networks from data sheets, with sources.

Rates of CPUs are given per slot. TensorFlow spreads a heavy kernel over all
cores, and also runs several ops at a time. One rate cannot express both. So a
socket counts as two slots of half its rate. In HDP's table (Mirhoseini et al.
2018) one CPU takes 4.1 to 4.4 times as long as one K40 on Inception and RNNLM.
These figures give 4.5.

The times that the host and the driver take for an op were measured on one
machine: an H100 with driver 580 and TensorFlow 2.21, with chains of ops that
only launch one kernel, in 2026. Drivers differ less than cards do, so all cards
have these figures. `gdp calibrate` measures them on another machine.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from gdp_grappler.cluster import card_memory

# In a chain or star of 2,000 ops with kernels, an op takes 4.6 to 6.3 us.
_DISPATCH_S = 5.2e-6
# An op that launches no kernel takes 0.35 to 1.3 us.
_VISIT_S = .85e-6
# The threads of four logical GPUs of one card share the lock of the context.
# Together they launch a kernel every 2.3 to 2.8 us.
_LOCK_S = 2.5e-6
# In a chain of kernels of 20 us, a kernel takes 21.9 us.
_GAP_S = 1.9e-6
# Four logical GPUs of one card run kernels of 200 us. The gap between two
# kernels of a logical GPU is 5.8 to 6.6 us, because three others are at work.
_SWITCH_S = 1.4e-6
# An idle hop of 64 bytes from GPU to GPU takes 40 us: a visit, the issue of the
# copy, its latency, and the way back to the consumer. The parts were not timed.
# A copy needs about six calls of the driver, a launch one or two.
_COPY_DISPATCH_S = 16e-6
_CALLBACK_S = 13e-6  # The way back of this hop to the consumer of the copy.
# If a hop waits for a kernel of 20 us, it ends 67 us after the kernel.
_POLL_S = 39e-6
# The smallest kernel, without the gap. Kernels of 1 us run as fast as they are
# dispatched, so a gap and a kernel take less time than a dispatch. In 2009 a
# kernel began every 3 us (Boyer, "CUDA Kernel Overhead", University of
# Virginia: 334,000 launches per second).
GPU_LAUNCH_S = 1.5e-6
# Fields of a `cluster.Device` that all cards share.
CARD_LAUNCH: dict[str, Any] = {
    'launch': 'asynchronous',
    'dispatch_s': _DISPATCH_S,
    'visit_s': _VISIT_S,
    'copy_dispatch_s': _COPY_DISPATCH_S,
    'lock_s': _LOCK_S,
    'gap_s': _GAP_S,
    'switch_s': _SWITCH_S,
    'callback_s': _CALLBACK_S,
    'poll_s': _POLL_S,
    'memory_margin': card_memory.MARGIN,
}
SLOTS_PER_SOCKET = 2  # Ops that a socket runs at a time (see above).
# Words after the name of a card that make it the name of another card.
_OTHERS = frozenset(('Laptop', 'SUPER', 'D', 'MIG'))
_TI = 'Ti'


def _gib(count: int) -> int:
  return count << 30


@dataclasses.dataclass(frozen=True)
class Peers:
  """Links between cards of one kind beside PCIe, made of bricks of wires.

  Attributes:
    kind: One of
      'bridge': cards 0 and 1, 2 and 3, ... of a host.
      'cube': eight cards as in a DGX-1, some pairs by one brick or two.
      'mesh': every pair by bricks of its own.
      'switch': every pair, at the full rate of a card.
    bricks: Bricks of a card; for 'mesh' and 'bridge', of a pair of cards.
    brick_bytes_per_s: Rate of large copies over a brick, in each direction.
  """

  kind: str
  bricks: int
  brick_bytes_per_s: float


@dataclasses.dataclass(frozen=True)
class Card:
  """A model of GPU.

  Attributes:
    name: Name in the title that the driver gives, such as 'P100'.
    memory_bytes: Memory of the card. `card_memory` has the part that TensorFlow
      can allocate.
    peak_flops: Peak FLOP/s of dense float32 kernels, as TensorFlow runs them.
    efficiency: Share of the peak that large dense kernels reach.
    bandwidth_bytes_per_s: Bandwidth of the memory of the card.
    pcie_bytes_per_s: Rate of large copies from and to pinned host memory.
    cpu: Key in `CPUS` of a typical server with this card.
    peers: NVLink or Infinity Fabric. None means PCIe alone.
    through_host: Whether copies from card to card over PCIe go through the
      host, because the driver refuses direct copies.
    own_way: Whether the card has a link to the processor for itself alone.
    launch_s: Seconds of the smallest kernel.
  """

  name: str
  memory_bytes: int
  peak_flops: float
  efficiency: float
  bandwidth_bytes_per_s: float
  pcie_bytes_per_s: float
  cpu: str
  peers: Peers | None = None
  through_host: bool = False
  own_way: bool = False
  launch_s: float = GPU_LAUNCH_S


@dataclasses.dataclass(frozen=True)
class Cpu:
  """The processors of one host.

  Attributes:
    title: Name for people.
    sockets: Number of chips in the host.
    cores: Number of cores of a chip.
    hertz: Base clock rate.
    flops_per_cycle: float32 operations of a core per cycle.
    bandwidth_bytes_per_s: Bandwidth of the memory of a chip.
    memory_bytes: Memory of the host.
  """

  title: str
  sockets: int
  cores: int
  hertz: float
  flops_per_cycle: int
  bandwidth_bytes_per_s: float
  memory_bytes: int

  @property
  def figures(self) -> dict[str, Any]:
    """Returns the fields of a `cluster.Device`; rates are per slot."""
    chip = self.cores * self.hertz * self.flops_per_cycle
    return dict(
        memory_bytes=self.memory_bytes, peak_flops=chip / SLOTS_PER_SOCKET,
        efficiency=CPU_EFFICIENCY,
        bandwidth_bytes_per_s=self.bandwidth_bytes_per_s / SLOTS_PER_SOCKET,
        launch_s=CPU_LAUNCH_S, slots=SLOTS_PER_SOCKET * self.sockets)


@dataclasses.dataclass(frozen=True)
class Network:
  """A network with one network card per host.

  Attributes:
    title: Name for people.
    latency_s: Latency of a RecvTensor between two hosts.
    bandwidth_bytes_per_s: Bandwidth for large tensors.
  """

  title: str
  latency_s: float
  bandwidth_bytes_per_s: float


# Large products of Eigen and oneDNN reach about half of the peak of AVX.
CPU_EFFICIENCY = 0.5
CPU_LAUNCH_S = 2e-6  # An assumption about the smallest op.
# The Send or the Recv of a small tensor. TensorFlow 2.21 spends 6.3 to 9.1 us
# of CPU time on both together, in up to 200 parallel chains over two and three
# logical CPUs (two cores of a Xeon).
CPU_COPY_S = 3.5e-6
GPU_EFFICIENCY = 0.7  # An assumption: share of the peak of large products.
# Latency of a copy on its stream, without the time until its readers start.
COPY_LATENCY_S = 10e-6
# Large copies over PCIe 3.0 x16 reach 12 of 15.75 GB/s (bandwidthTest of the
# CUDA samples).
PCIE3_BYTES_PER_S = 12e9
PCIE4_BYTES_PER_S = 24e9  # Assumed to reach the same share of twice the rate.
PCIE5_BYTES_PER_S = 48e9  # Assumed likewise: four times the rate of PCIe 3.0.
# A brick of NVLink 2 to 4 carries 25 GB/s each way (NVIDIA Tesla V100
# whitepaper, 2017; A100, 2020; H100, 2022). Copies between two V100 reach some
# 92 % (Li et al., Evaluating Modern GPU Interconnect, TPDS 2020). Other cards
# are assumed to reach the same share.
NVLINK_BYTES_PER_S = 23e9
# A brick of NVLink 5 carries twice as much (NVIDIA Blackwell architecture
# technical brief, 2024).
_NVLINK5_BYTES_PER_S = 46e9
# NVLink-C2C carries 450 GB/s each way between a Grace processor and its two
# cards (NVIDIA GB200 NVL72 data sheet, 2024). Large copies are assumed to reach
# the same share as over PCIe.
_C2C_BYTES_PER_S = 12 / 15.75 * 450e9 / 2
# Bridges of GA102 have four links of 14.0625 GB/s each way (NVIDIA Ampere GA102
# whitepaper, 2020).
_BRIDGE = Peers('bridge', 4, .92 * 14.0625e9)
# A link of Infinity Fabric 3 carries 50 GB/s each way. Copies reach 38 GB/s,
# also between dies with several links, because the copy engine is the limit
# (Pearson, Interconnect Bandwidth Heterogeneity on AMD MI250x and Infinity
# Fabric, 2023).
_FABRIC3 = Peers('mesh', 1, 38e9)
_FABRIC4 = Peers('mesh', 1, .76 * 64e9)  # Assumed the same share of 64 GB/s.

# Compute capability 8.0 and later multiply float32 in TF32, unless
# tf.config.experimental.enable_tensor_float_32_execution(False) was called.
# Real kernels reach about half of the peaks of HBM cards.
_TF32_EFFICIENCY = .5
# Peaks without sparsity. Data sheets from A100 on also state twice the peak.
CARDS = {
    card.name: card for card in (
        # NVIDIA Tesla K40 data sheet, 2013: 12 GB GDDR5, 4.29 TFLOP/s,
        # 288 GB/s, PCIe 3.0 x16.
        Card('K40', _gib(12), 4.29e12, GPU_EFFICIENCY, 288e9, PCIE3_BYTES_PER_S,
             'haswell'),
        # NVIDIA Tesla P100 data sheet, 2016, the PCIe card: 16 GB HBM2,
        # 9.3 TFLOP/s, 732 GB/s, PCIe 3.0 x16.
        Card('P100', _gib(16), 9.3e12, GPU_EFFICIENCY, 732e9, PCIE3_BYTES_PER_S,
             'broadwell'),
        # NVIDIA Tesla V100 data sheet, 2017, SXM2: 16 GB HBM2, 15.7 TFLOP/s,
        # 900 GB/s, six bricks of NVLink 2.
        Card('V100', _gib(16), 15.7e12, GPU_EFFICIENCY, 900e9,
             PCIE3_BYTES_PER_S, 'broadwell2',
             Peers('cube', 6, NVLINK_BYTES_PER_S)),
        # NVIDIA T4 data sheet, 2018: 16 GB GDDR6, 8.1 TFLOP/s, 320 GB/s,
        # PCIe 3.0 x16.
        Card('T4', _gib(16), 8.1e12, GPU_EFFICIENCY, 320e9, PCIE3_BYTES_PER_S,
             'cascadelake'),
        # NVIDIA A100 data sheet, 2020, SXM4 40 GB: 156 TFLOP/s TF32, 1555 GB/s,
        # twelve bricks of NVLink 3, PCIe 4.0 x16.
        Card('A100', _gib(40), 156e12, _TF32_EFFICIENCY,
             1555e9, PCIE4_BYTES_PER_S, 'rome2',
             Peers('switch', 12, NVLINK_BYTES_PER_S)),
        # NVIDIA Ampere GA102 whitepaper, 2020: 24 GB GDDR6X, 35.6 TFLOP/s in
        # TF32 as in float32, 936 GB/s, PCIe 4.0 x16, a bridge.
        Card('RTX3090', _gib(24), 35.6e12, GPU_EFFICIENCY, 936e9,
             PCIE4_BYTES_PER_S, 'threadripper', _BRIDGE, True),
        # NVIDIA RTX A6000 data sheet, 2020: 48 GB GDDR6, 38.7 TFLOP/s, 77.4 in
        # TF32, 768 GB/s, PCIe 4.0 x16, a bridge.
        Card('A6000', _gib(48), 77.4e12, _TF32_EFFICIENCY, 768e9,
             PCIE4_BYTES_PER_S, 'threadripper', _BRIDGE),
        # NVIDIA A10 data sheet, 2021: 24 GB GDDR6, 31.2 TFLOP/s, 62.5 in TF32,
        # 600 GB/s, PCIe 4.0 x16.
        Card('A10', _gib(24), 62.5e12, _TF32_EFFICIENCY, 600e9,
             PCIE4_BYTES_PER_S, 'rome'),
        # NVIDIA A10G data sheet, 2021, made for AWS' g5: as A10, but
        # 35 TFLOP/s in float32 and in TF32.
        Card('A10G', _gib(24), 35e12, GPU_EFFICIENCY, 600e9, PCIE4_BYTES_PER_S,
             'rome'),
        # AMD Instinct MI250X data sheet, 2021, one of its two dies, each of
        # which is a device: 64 GB HBM2e, 47.9 TFLOP/s as matrices of float32,
        # 1.6 TB/s, PCIe 4.0 x16.
        Card('MI250X', _gib(64), 47.9e12, _TF32_EFFICIENCY, 1638e9,
             PCIE4_BYTES_PER_S, 'milan', _FABRIC3),
        # NVIDIA H100 data sheet, 2022, SXM5 80 GB: 989 TFLOP/s TF32 with
        # sparsity, half of it without, 3.35 TB/s, 18 bricks of NVLink 4,
        # PCIe 5.0 x16.
        Card('H100', _gib(80), 494.5e12, _TF32_EFFICIENCY, 3350e9,
             PCIE5_BYTES_PER_S, 'sapphire2',
             Peers('switch', 18, NVLINK_BYTES_PER_S)),
        # NVIDIA H200 data sheet, 2024, SXM5: 141 GB HBM3e, 4.8 TB/s, the rest
        # as H100.
        Card('H200', _gib(141), 494.5e12, _TF32_EFFICIENCY, 4800e9,
             PCIE5_BYTES_PER_S, 'sapphire2',
             Peers('switch', 18, NVLINK_BYTES_PER_S)),
        # NVIDIA Ada GPU architecture whitepaper, 2022: 24 GB GDDR6X,
        # 82.6 TFLOP/s in TF32 as in float32, 1008 GB/s, PCIe 4.0 x16.
        Card('RTX4090', _gib(24), 82.6e12, GPU_EFFICIENCY, 1008e9,
             PCIE4_BYTES_PER_S, 'threadripper', None, True),
        # NVIDIA L4 data sheet, 2023: 24 GB GDDR6, 30.3 TFLOP/s, 120 in TF32
        # with sparsity, 300 GB/s, PCIe 4.0 x16.
        Card('L4', _gib(24), 60e12, _TF32_EFFICIENCY, 300e9, PCIE4_BYTES_PER_S,
             'cascadelake'),
        # NVIDIA L40S data sheet, 2023: 48 GB GDDR6, 91.6 TFLOP/s, 183 in TF32,
        # 864 GB/s, PCIe 4.0 x16.
        Card('L40S', _gib(48), 183e12, _TF32_EFFICIENCY, 864e9,
             PCIE4_BYTES_PER_S, 'genoa2'),
        # AMD Instinct MI300X data sheet, 2023: 192 GB HBM3, 163.4 TFLOP/s,
        # 5.3 TB/s, PCIe 5.0 x16, seven links.
        Card('MI300X', _gib(192), 163.4e12, _TF32_EFFICIENCY, 5300e9,
             PCIE5_BYTES_PER_S, 'genoa2', _FABRIC4),
        # NVIDIA HGX B200, 2024: 180 GB HBM3e, 2.2 PFLOP/s TF32 with sparsity,
        # half of it without, 8 TB/s, 18 bricks of NVLink 5, PCIe 5.0 x16.
        Card('B200', _gib(180), 1100e12, _TF32_EFFICIENCY, 8000e9,
             PCIE5_BYTES_PER_S, 'emerald2',
             Peers('switch', 18, _NVLINK5_BYTES_PER_S)),
        # NVIDIA GB200 NVL72 data sheet, 2024, one of the two cards of a Grace
        # processor: 186 GB HBM3e, 2.5 PFLOP/s TF32 with sparsity, half of it
        # without, 8 TB/s, 18 bricks of NVLink 5; NVLink-C2C to the host.
        Card('GB200', _gib(186), 1250e12, _TF32_EFFICIENCY,
             8000e9, _C2C_BYTES_PER_S, 'grace',
             Peers('switch', 18, _NVLINK5_BYTES_PER_S), own_way=True),
        # NVIDIA RTX Blackwell GPU architecture whitepaper, 2025: 32 GB GDDR7,
        # 104.8 TFLOP/s in TF32 as in float32, 1792 GB/s, PCIe 5.0 x16.
        Card('RTX5090', _gib(32), 104.8e12, GPU_EFFICIENCY, 1792e9,
             PCIE5_BYTES_PER_S, 'threadripper', None, True),
        # The same architecture: multiprocessors x 128 lanes x boost clock x 2.
        # 16 GB, 84 at 2.617 GHz, 960 GB/s.
        Card('RTX5080', _gib(16), 56.3e12, GPU_EFFICIENCY, 960e9,
             PCIE5_BYTES_PER_S, 'threadripper', None, True),
        # 16 GB, 70 at 2.452 GHz, 896 GB/s.
        Card('RTX5070TI', _gib(16), 43.9e12, GPU_EFFICIENCY, 896e9,
             PCIE5_BYTES_PER_S, 'threadripper', None, True),
        # 12 GB, 48 at 2.512 GHz, 672 GB/s.
        Card('RTX5070', _gib(12), 30.9e12, GPU_EFFICIENCY, 672e9,
             PCIE5_BYTES_PER_S, 'threadripper', None, True),
    )
}
# As DGX-2 has them (NVIDIA DGX-2 data sheet, 2018): SXM3 with 32 GB, joined by
# NVSwitch.
V100_OF_DGX2 = dataclasses.replace(CARDS['V100'], memory_bytes=_gib(32),
                                   cpu='skylake2',
                                   peers=Peers('switch', 6, NVLINK_BYTES_PER_S))

# A compute tray of GB200 NVL72 (data sheet, 2024): four cards, two processors.
GB200_OF_TRAY = dataclasses.replace(CARDS['GB200'], cpu='grace2')

# Cores, clocks and memory from Intel ARK and AMD's product pages. 32 FLOP per
# cycle are two AVX2 units of 8 fused multiply-adds, 64 two of AVX-512.
CPUS = {
    # HDP, section 4: "Intel Haswell 2300", 2.3 GHz as Google's cloud has it.
    'haswell':
        Cpu('Xeon E5-2699 v3', 1, 18, 2.3e9, 32, 68e9, _gib(256)),
    # GDP, section 4.1: Broadwell.
    'broadwell':
        Cpu('Xeon E5-2690 v4', 1, 14, 2.6e9, 32, 76.8e9, _gib(256)),
    # NVIDIA DGX-1 data sheet, 2017.
    'broadwell2':
        Cpu('2 Xeon E5-2698 v4', 2, 20, 2.2e9, 32, 76.8e9, _gib(512)),
    # NVIDIA DGX-2 data sheet, 2018.
    'skylake2':
        Cpu('2 Xeon Platinum 8168', 2, 24, 2.7e9, 64, 128e9, _gib(1536)),
    # NVIDIA DGX A100 data sheet, 2020.
    'rome2':
        Cpu('2 EPYC 7742', 2, 64, 2.25e9, 32, 204.8e9, _gib(1024)),
    # NVIDIA DGX H100 data sheet, 2022.
    'sapphire2':
        Cpu('2 Xeon Platinum 8480C', 2, 56, 2e9, 64, 307.2e9, _gib(2048)),
    # AWS g4dn, which has T4: 6 channels of DDR4-2933.
    'cascadelake':
        Cpu('Xeon Platinum 8259CL', 1, 24, 2.5e9, 64, 140.8e9, _gib(384)),
    # AWS g5, which has A10G: 8 channels of DDR4-3200.
    'rome':
        Cpu('EPYC 7R32', 1, 48, 2.8e9, 32, 204.8e9, _gib(768)),
    # Workstations: 8 channels of DDR4-3200.
    'threadripper':
        Cpu('Threadripper PRO 5975WX', 1, 32, 3.6e9, 32, 204.8e9, _gib(256)),
    # Nodes of Frontier, which have MI250X.
    'milan':
        Cpu('EPYC 7A53', 1, 64, 2e9, 32, 204.8e9, _gib(512)),
    # 12 channels of DDR5-4800.
    'genoa2':
        Cpu('2 EPYC 9654', 2, 96, 2.4e9, 32, 460.8e9, _gib(1536)),
    # 12 channels of DDR5-6000; Zen 5 has AVX-512 at full width.
    'turin2':
        Cpu('2 EPYC 9755', 2, 128, 2.7e9, 64, 576e9, _gib(1536)),
    # NVIDIA DGX B200 data sheet, 2024: 8 channels of DDR5-5600.
    'emerald2':
        Cpu('2 Xeon Platinum 8570', 2, 56, 2.1e9, 64, 358.4e9, _gib(2048)),
    # NVIDIA Grace CPU data sheet, 2023: 4 SVE2 units of 4 lanes; memory as of
    # GB200 NVL72.
    'grace':
        Cpu('Grace', 1, 72, 3.1e9, 32, 512e9, _gib(480)),
    'grace2':
        Cpu('2 Grace', 2, 72, 3.1e9, 32, 512e9, _gib(960)),
    # 12 channels of DDR5-6400.
    'granite2':
        Cpu('2 Xeon 6980P', 2, 128, 2e9, 64, 614.4e9, _gib(1536)),
}

# Large tensors get about 90 % of the wire. TensorFlow's gRPC takes some 100 us
# per tensor over Ethernet; 20 us stand for InfiniBand with RDMA (Jia et al.,
# Improving the Performance of Distributed TensorFlow with RDMA, 2018).
NETWORKS = {
    'eth10': Network('10 Gbit/s Ethernet', 100e-6, 1.125e9),
    'eth25': Network('25 Gbit/s Ethernet', 100e-6, 2.8e9),
    'eth100': Network('100 Gbit/s Ethernet', 100e-6, 11.25e9),
    'ib': Network('InfiniBand EDR, 100 Gbit/s', 20e-6, 11.25e9),
    'ib200': Network('InfiniBand HDR, 200 Gbit/s', 20e-6, 22.5e9),
    'ib400': Network('InfiniBand NDR, 400 Gbit/s', 20e-6, 45e9),
}


def card_of(title: str) -> Card | None:
  """Returns the card that a title such as 'Tesla P100-PCIE-16GB' names.

  None means that the title names no card. Slower chips, such as those of
  notebooks, and slices (MIG) have a further word. They are other cards.
  """
  words = re.split(r'[^A-Za-z0-9]+', title)
  if _OTHERS.intersection(words):
    return None
  names = words + [first + then for first, then in zip(words, words[1:])]
  if _TI in words:  # Not 'RTX5070', but 'RTX5070TI'.
    names = [name + _TI.upper() for name in names]
  return next((card for card in CARDS.values()
               for name in names if re.fullmatch(card.name + '[a-z]?', name)),
              None)
