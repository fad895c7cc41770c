"""The part of a card's memory that TensorFlow can allocate.

A data sheet gives the total memory. The driver and a context use a part of it,
and TensorFlow leaves a reserve for libraries such as cuDNN. TensorFlow prints
the rest: "Created device ... GPU:0 with 13757 MB memory", where MB means MiB.
"""

from __future__ import annotations

# Share of the allocatable memory that plans leave free, because TensorFlow's
# allocator loses memory to gaps between tensors (a large tensor does not fit
# into a small gap), and because convolutions are faster with scratch memory,
# which the simulator does not count. Emulated steps that fill a card need less
# (docs/too_big.md), but libraries such as cuDNN take no memory there.
MARGIN = .12

# The reserve by the major number of the compute capability. It is
# `MinSystemMemory` of tensorflow/core/common_runtime/gpu/gpu_device.cc (2.21),
# as are the four numbers below.
_RESERVE_MIB = {6: 500, 7: 1050, 8: 1536}
# From this major number on, cards have the reserve of the newest ones.
_NEWEST = 9
# The reserve of the newest cards.
_NEWEST_RESERVE_MIB = 1800
# The reserve of a card with little memory.
_SMALL_RESERVE_MIB = 225
_SMALL_BYTES = 1 << 31  # A card with fewer bytes has little memory.
# Least share of the nominal memory that a driver reports: error correction of
# GDDR6 takes a sixteenth.
_LEAST_SHARE = .9
# Memory of the driver and a context: the total, less the reserve and the memory
# that TensorFlow printed. It is 740 MiB on an RTX 4090, 531 on an L4, 996 on an
# H100, by the logs below and the totals of nvidia-smi (24,564, 23,034 and
# 81,559 MiB).
_CONTEXT_MIB = 750

# Allocatable memory by name and nominal GiB. "Log" means that TensorFlow
# printed the number, in logs that people have published with their programs; if
# logs differ, it is a common number of a recent release. "As CARD" means the
# total of nvidia-smi, less the same difference as for that card.
_ALLOCATABLE_MIB = {
    ('K40', 12):
        10_610,  # Log, Tesla K40m.
    ('P100', 16):
        15_403,  # Log, Tesla P100-PCIE-16GB; others to 15,511.
    ('V100', 16):
        14_824,  # Log; others 14,648 to 14,988.
    ('V100', 32):
        30_995,  # Log, Tesla V100-SXM2-32GB; others to 31,134.
    ('T4', 16):
        13_757,  # Log; others to 14,151.
    ('A100', 40):
        38_366,  # Log, A100-SXM4-40GB; others 38,068 to 38,482.
    ('RTX3090', 24):
        22_446,  # Log; others 22,289 to 22,455.
    ('A6000', 48):
        46_673,  # Log; others to 46,866.
    ('A10', 24):
        20_961,  # As L4: 23,028 MiB in all.
    ('A10G', 24):
        20_961,  # As L4: 23,028 MiB in all.
    ('MI250X', 64):
        63_828,  # Log, MI250X/MI250.
    ('H100', 80):
        78_763,  # Log, H100 80GB HBM3.
    ('H200', 141):
        140_975,  # As H100: 143,771 MiB in all.
    ('RTX4090', 24):
        22_288,  # Log; with a screen attached 21,286.
    ('L4', 24):
        20_967,  # Log; older releases 20,549 and 20,795.
    ('L40S', 48):
        44_001,  # As L4: 46,068 MiB in all.
    ('MI300X', 192):
        194_900,  # As MI250X, which lacks 1,708 of 65,536 MiB.
    ('B200', 180):
        180_563,  # As H100: 183,359 MiB in all.
    ('GB200', 186):
        186_675,  # As H100: 189,471 MiB in all.
    # As RTX 4090, with the newest reserve: 32,607, 16,303 and 12,227 in all.
    ('RTX5090', 32):
        30_067,
    ('RTX5080', 16):
        13_763,
    ('RTX5070TI', 16):
        13_763,
    ('RTX5070', 12):
        9_687,
}


def of_card(name: str, nominal_bytes: int) -> int:
  """Bytes that TensorFlow can allocate on a card of the table.

  Args:
    name: Name of a `device_figures.Card`.
    nominal_bytes: Memory in its data sheet.
  """
  return _ALLOCATABLE_MIB[name, nominal_bytes >> 30] << 20


def is_nominal(total_bytes: int, nominal_bytes: int) -> bool:
  """Whether a driver's total fits a card of this nominal memory."""
  return _LEAST_SHARE * nominal_bytes <= total_bytes <= nominal_bytes


def of_total(total_bytes: int, capability: tuple[int, int] | None) -> int:
  """Bytes that TensorFlow can allocate on an idle card.

  Args:
    total_bytes: Total memory that the driver reports.
    capability: CUDA compute capability. None if it is unknown; the reserve is
      then the largest one.
  """
  if total_bytes < _SMALL_BYTES:
    taken_mib = _SMALL_RESERVE_MIB
  else:
    major = capability[0] if capability else _NEWEST
    reserve_mib = _RESERVE_MIB.get(max(major, min(_RESERVE_MIB)),
                                   _NEWEST_RESERVE_MIB)
    taken_mib = reserve_mib + _CONTEXT_MIB
  return max(total_bytes - (taken_mib << 20), total_bytes // 2)
