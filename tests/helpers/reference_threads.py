"""Simple versions of the queues of simulated threads.

A part of `reference_simulator`.
"""

from __future__ import annotations

import dataclasses

from helpers import reference_transfers


@dataclasses.dataclass
class Chain:
  """A thread that dispatches; `queue` has its ops and transfers."""
  device: int
  queue: list[int | reference_transfers.Transfer]
  due: float
  current: int | reference_transfers.Transfer | None = None


@dataclasses.dataclass
class Work:
  """The work of a device for the transfer with this number."""
  number: int
  device: int
  sends: bool
  due: float
  seconds: float
  start: float | None = None
  end: float | None = None
  slot: int | None = None
  done: bool = False
