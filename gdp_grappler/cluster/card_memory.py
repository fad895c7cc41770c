"""What TensorFlow can allocate of a card's memory.

Less than the data sheet says: error correction, the driver and its context take
some, and TensorFlow leaves some to libraries. The table of cards
(`device_figures`) has what logs in public repositories say of an idle card:
"Created device /job:localhost/replica:0/task:0/device:GPU:0 with 15401 MB
memory: -> device: 0, name: Tesla P100-PCIE-16GB", where an MB is a MiB; logs of
2018 to 2026, and the figure that occurs most. No log of an A10, A10G, L40S,
MI300X or B200 was found: theirs is the driver's figure less what is missing on
the card most like it (L4, L4, L4, MI250X, H100).
"""

from __future__ import annotations

from gdp_grappler.cluster import device_figures


def _mib(count: int) -> int:
  return count << 20


# What TensorFlow leaves to libraries, by the first number of a card's compute
# capability; older and newer cards are as the nearest
# (tensorflow/core/common_runtime/gpu/gpu_device.cc, MinSystemMemory).
_LEFT_BYTES = {6: _mib(500), 7: _mib(1050), 8: _mib(1536), 9: _mib(1800)}
# What the context of the driver takes, about, of the cards in the table.
_CONTEXT_BYTES = _mib(512)
# A card of the table has about as much memory as it should, or is another model
# under the same name.
_ALIKE = .9


def allocatable_bytes(total_bytes: int, title: str, capability: int) -> int:
  """What TensorFlow can allocate of a card's memory.

  Args:
    total_bytes: As the driver says.
    title: The card's, as the driver says.
    capability: First number of its compute capability.
  """
  known = device_figures.card_of(title)
  if known is not None and known.memory_bytes >= _ALIKE * total_bytes:
    return min(known.memory_bytes, total_bytes)
  nearest = min(max(capability, min(_LEFT_BYTES)), max(_LEFT_BYTES))
  return max(total_bytes - _LEFT_BYTES[nearest] - _CONTEXT_BYTES, 0)
