"""Facts about the cards of this machine from NVIDIA's management library.

`libnvidia-ml.so.1` comes with the driver. If it is absent, or too old for a
query, the result is None, and the caller assumes a value and says so.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
from typing import Any, Mapping, Protocol, Sequence

_LIBRARY = 'libnvidia-ml.so.1'
_SUCCESS = 0  # Result of NVML's functions.
# NVML's number for the clock of multiprocessors.
_CLOCK_SM = 1
_CLOCK_MEMORY = 2  # NVML's number for the clock of the memory.
_MOST_NVLINKS = 18  # Of a card.
# NVML's number for a switch at the other end of a link.
_REMOTE_SWITCH = 2
# NVML's number for two cards behind one switch of PCIe.
_TOPOLOGY_ONE_SWITCH = 10


@dataclasses.dataclass(frozen=True)
class CardFacts:
  """Facts about one card. None means unknown.

  Attributes:
    title: Name of the card, such as 'Tesla P100-PCIE-16GB'.
    uuid: Unique name, 'GPU-...'.
    memory_bytes: Total memory.
    used_bytes: Memory that all programs use now.
    lanes: Number of float32 units of the whole card.
    capability: CUDA compute capability.
    clock_hertz: Highest clock of the multiprocessors.
    memory_clock_hertz: Highest clock of the memory.
    memory_bus_bits: Width of the memory bus.
    pcie_generation: Highest PCIe generation of its link.
    pcie_lanes: Largest number of PCIe lanes of its link.
    nvlinks: Number of active NVLinks to each other card, by its index.
    switch_nvlinks: Number of active NVLinks to an NVSwitch.
    switch_neighbours: Indices of other cards behind the same PCIe switch.
  """

  title: str
  uuid: str | None = None
  memory_bytes: int | None = None
  used_bytes: int | None = None
  lanes: int | None = None
  capability: tuple[int, int] | None = None
  clock_hertz: float | None = None
  memory_clock_hertz: float | None = None
  memory_bus_bits: int | None = None
  pcie_generation: int | None = None
  pcie_lanes: int | None = None
  nvlinks: dict[int, int] = dataclasses.field(default_factory=dict)
  switch_nvlinks: int = 0
  switch_neighbours: tuple[int, ...] = ()

  @property
  def flops(self) -> float | None:
    """Float32 operations per second: lanes x clock x 2."""
    if self.lanes and self.clock_hertz:
      return self.lanes * self.clock_hertz * 2.
    return None

  @property
  def bandwidth_bytes_per_s(self) -> float | None:
    """Bus width x clock x 2 (two transfers per cycle), as in Grappler."""
    if self.memory_bus_bits and self.memory_clock_hertz:
      return self.memory_bus_bits / 8 * self.memory_clock_hertz * 2.
    return None


class Source(Protocol):
  """A source of facts about cards."""

  def cards(self) -> list[CardFacts]:
    """All cards of the machine, in the order of the PCIe bus."""

  def driver(self) -> str:
    """Version of the driver; '' if it is unknown."""


class NoCards:
  """The source of a machine without the library."""

  def cards(self) -> list[CardFacts]:
    """No cards."""
    return []

  def driver(self) -> str:
    """'', because the version is unknown."""
    return ''


class NvmlLibrary:
  """The real library; each call queries it anew."""

  def __init__(self, path: str = _LIBRARY) -> None:
    """Loads the library.

    Raises:
      OSError: there is no such library.
    """
    self._lib = ctypes.CDLL(path)

  def cards(self) -> list[CardFacts]:
    """All cards; none if the driver does not answer."""
    if self._lib.nvmlInit_v2() != _SUCCESS:
      return []
    try:
      count = self._number('nvmlDeviceGetCount_v2') or 0
      found = [self._handle(index) for index in range(count)]
      handles = [handle for handle in found if handle is not None]
      if len(handles) < len(found):
        return []
      buses = {self._bus(handle): i for i, handle in enumerate(handles)}
      return [self._card(handle, handles, buses) for handle in handles]
    finally:
      self._lib.nvmlShutdown()

  def driver(self) -> str:
    """Version of the driver; '' if the driver does not answer."""
    if self._lib.nvmlInit_v2() != _SUCCESS:
      return ''
    try:
      return self._text('nvmlSystemGetDriverVersion') or ''
    finally:
      self._lib.nvmlShutdown()

  def _handle(self, index: int) -> ctypes.c_void_p | None:
    handle = ctypes.c_void_p()
    return handle if self._call('nvmlDeviceGetHandleByIndex_v2',
                                ctypes.c_uint(index),
                                ctypes.byref(handle)) else None

  def _card(self, handle: ctypes.c_void_p, handles: Sequence[ctypes.c_void_p],
            buses: Mapping[tuple[int, int, int], int]) -> CardFacts:
    peers, to_switch = self._nvlinks(handle, buses)
    memory = (ctypes.c_ulonglong * 3)()  # Total, free, used.
    total, used = ((memory[0], memory[2]) if self._call(
        'nvmlDeviceGetMemoryInfo', handle, memory) else (None, None))
    megahertz = {
        clock:
            self._number('nvmlDeviceGetMaxClockInfo', handle,
                         ctypes.c_uint(clock))
        for clock in (_CLOCK_SM, _CLOCK_MEMORY)
    }
    return CardFacts(
        title=self._text('nvmlDeviceGetName', handle) or '',
        uuid=self._text('nvmlDeviceGetUUID', handle), memory_bytes=total,
        used_bytes=used, lanes=self._number('nvmlDeviceGetNumGpuCores', handle),
        capability=self._two('nvmlDeviceGetCudaComputeCapability',
                             handle), clock_hertz=_hertz(megahertz[_CLOCK_SM]),
        memory_clock_hertz=_hertz(megahertz[_CLOCK_MEMORY]),
        memory_bus_bits=self._number('nvmlDeviceGetMemoryBusWidth', handle),
        pcie_generation=self._number('nvmlDeviceGetMaxPcieLinkGeneration',
                                     handle),
        pcie_lanes=self._number('nvmlDeviceGetMaxPcieLinkWidth', handle),
        nvlinks=peers, switch_nvlinks=to_switch, switch_neighbours=tuple(
            i for i, other in enumerate(handles)
            if other is not handle and self._share_switch(handle, other)))

  def _nvlinks(
      self, handle: ctypes.c_void_p,
      buses: Mapping[tuple[int, int, int], int]) -> tuple[dict[int, int], int]:
    """Number of active NVLinks to each card, and to a switch."""
    peers: dict[int, int] = {}
    to_switch = 0
    for link in range(_MOST_NVLINKS):
      number = ctypes.c_uint(link)
      if not self._number('nvmlDeviceGetNvLinkState', handle, number):
        continue
      if self._number('nvmlDeviceGetNvLinkRemoteDeviceType', handle,
                      number) == _REMOTE_SWITCH:
        to_switch += 1
        continue
      info = _PciInfo()
      if self._call('nvmlDeviceGetNvLinkRemotePciInfo_v2', handle, number,
                    ctypes.byref(info)) and info.key in buses:
        index = buses[info.key]
        peers[index] = peers.get(index, 0) + 1
    return peers, to_switch

  def _share_switch(self, handle: ctypes.c_void_p,
                    other: ctypes.c_void_p) -> bool:
    level = self._number('nvmlDeviceGetTopologyCommonAncestor', handle, other)
    return level is not None and level <= _TOPOLOGY_ONE_SWITCH

  def _bus(self, handle: ctypes.c_void_p) -> tuple[int, int, int]:
    info = _PciInfo()
    self._call('nvmlDeviceGetPciInfo_v3', handle, ctypes.byref(info))
    return info.key

  def _call(self, name: str, *arguments: Any) -> bool:
    """Calls a function; False if the library lacks it or it fails."""
    function = getattr(self._lib, name, None)
    return function is not None and function(*arguments) == _SUCCESS

  def _number(self, name: str, *arguments:
              ctypes.c_void_p | ctypes.c_uint) -> int | None:
    result = ctypes.c_uint()
    return result.value if self._call(name, *arguments,
                                      ctypes.byref(result)) else None

  def _two(self, name: str, handle: ctypes.c_void_p) -> tuple[int, int] | None:
    first, second = ctypes.c_int(), ctypes.c_int()
    if self._call(name, handle, ctypes.byref(first), ctypes.byref(second)):
      return first.value, second.value
    return None

  def _text(self, name: str, *arguments: ctypes.c_void_p) -> str | None:
    buffer = ctypes.create_string_buffer(96)
    if self._call(name, *arguments, buffer, ctypes.c_uint(len(buffer))):
      return buffer.value.decode(errors='replace')
    return None


class _PciInfo(ctypes.Structure):
  """`nvmlPciInfo_t`."""
  _fields_ = [('bus_id_legacy', ctypes.c_char * 16), ('domain', ctypes.c_uint),
              ('bus', ctypes.c_uint), ('device', ctypes.c_uint),
              ('pci_device_id', ctypes.c_uint),
              ('pci_subsystem_id', ctypes.c_uint),
              ('bus_id', ctypes.c_char * 32)]

  @property
  def key(self) -> tuple[int, int, int]:
    """Address of the card on the PCIe bus."""
    return self.domain, self.bus, self.device


def installed() -> Source:
  """The library of this machine, or `NoCards` if there is none."""
  try:
    return NvmlLibrary()
  except OSError:
    return NoCards()


def visible(cards: list[CardFacts]) -> list[int]:
  """Indices of the cards that CUDA_VISIBLE_DEVICES names, in its order.

  As in CUDA, the list ends at the first entry that names no card.
  """
  setting = os.environ.get('CUDA_VISIBLE_DEVICES')
  if setting is None:
    return list(range(len(cards)))
  result = []
  for entry in (part.strip() for part in setting.split(',')):
    if entry.isdigit() and int(entry) < len(cards):
      result.append(int(entry))
      continue
    named = [
        i for i, card in enumerate(cards)
        if entry and card.uuid and card.uuid.startswith(entry)
    ]
    if len(named) != 1:
      break
    result += named
  return result


def _hertz(megahertz: int | None) -> float | None:
  return megahertz * 1e6 if megahertz else None
