"""Resources that logical GPUs of one card share: threads and bandwidth.

The table has the number of threads that each card of `device_figures.CARDS`
holds at a time. It is the number of multiprocessors of the model (from the data
sheets and whitepapers that `device_figures` names), times "Maximum number of
resident threads per SM" of the compute capability (CUDA C++ Programming Guide).
For AMD's cards it is the number of compute units, times 4 SIMD units x 8 waves
x 64 (CDNA3 instruction set architecture, 2023).
"""

from __future__ import annotations

# Rate of a copy within a card, as a share of half the bandwidth.
_MOVED_SHARE = .78

# Multiprocessors of a card times the threads that one of them holds.
_RESIDENT_THREADS = {
    'K40': 15 * 2048, 'P100': 56 * 2048, 'V100': 80 * 2048, 'T4': 40 * 1024,
    'A100': 108 * 2048, 'RTX3090': 82 * 1536, 'A6000': 84 * 1536,
    'A10': 72 * 1536, 'A10G': 80 * 1536, 'MI250X': 110 * 2048,
    'H100': 132 * 2048, 'H200': 132 * 2048, 'RTX4090': 128 * 1536,
    'L4': 58 * 1536, 'L40S': 142 * 1536, 'MI300X': 304 * 2048,
    'B200': 148 * 2048, 'GB200': 148 * 2048, 'RTX5090': 170 * 1536,
    'RTX5080': 84 * 1536, 'RTX5070TI': 70 * 1536, 'RTX5070': 48 * 1536
}


def resident_threads(card: str) -> int:
  """Number of threads that a card holds; 0 if it is unknown.

  Args:
    card: Name of the card, such as 'H100'; a key of `device_figures.CARDS`.
  """
  return _RESIDENT_THREADS.get(card, 0)


def within_card_bytes_per_s(bandwidth_bytes_per_s: float) -> float:
  """Rate of a copy from one logical GPU of a card to another one.

  A copy reads and writes the memory, so it gets half of the bandwidth at most.
  An H100 copies 512 MB at about 1.3 TB/s, which is 78 % of half of the data
  sheet's bandwidth. Other kernels that move data reach the same share.

  Args:
    bandwidth_bytes_per_s: Bandwidth of the card's memory.
  """
  return _MOVED_SHARE * bandwidth_bytes_per_s / 2
