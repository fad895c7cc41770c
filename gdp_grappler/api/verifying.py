"""Runs three small programs with and without placement, and compares losses.

A GPU multiplies in TF32 and sums in another order than a CPU, so losses of
different kinds of devices cannot be compared. Therefore a program runs twice on
one kind of device: first as TensorFlow places it, then spread over two devices
of that kind. The rules for rounding (`graph.legality.rounding`) keep float
arithmetic on its kind of device; only exact ops may leave the GPUs for the CPU.
On GPUs both runs have deterministic ops, because other kernels of TensorFlow
give different results from run to run.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import sys
import time
from typing import Sequence

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.processes import calls
from gdp_grappler.reports import tables

_MODULE = 'gdp_grappler.api.verify_programs'
_PROGRAMS = {
    'keras_fit': "Keras' fit", 'training_loop': 'a tf.function that trains',
    'session': 'a v1 Session'
}
KINDS = ('CPU', 'GPU')
# Environment variables that hide all GPUs from a process.
_HIDDEN = {'CUDA_VISIBLE_DEVICES': '-1', 'HIP_VISIBLE_DEVICES': '-1'}
_TIMEOUT_S = 600.  # Long enough for a busy machine.
# Relative difference of losses, at the most. Placement itself changes no
# number, but the kernels of the two devices may round differently.
_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True)
class Verified:
  """The result of one program on one kind of device.

  Attributes:
    program: Name of the program, a function of `verify_programs`.
    what: Description of the program.
    kind: Kind of its devices, one of `KINDS`.
    works: Whether its ops ran on both devices and its losses agree.
    detail: Devices and losses, or the reason of the failure.
    seconds: Time of the program's process, in seconds.
  """

  program: str
  what: str
  kind: str
  works: bool
  detail: str
  seconds: float


@dataclasses.dataclass(frozen=True)
class Verification:
  """The result of `verify`.

  Attributes:
    programs: Result of each program on each kind of device.
  """

  programs: tuple[Verified, ...]

  @property
  def works(self) -> bool:
    """Whether all programs work."""
    return all(program.works for program in self.programs)

  def show(self) -> None:
    """Prints the result of each program."""
    sys.stdout.write(f'{self}\n')

  def __str__(self) -> str:
    lines = [
        f'{"ok " if p.works else "BAD"}  {p.what}, on {p.kind}s: {p.detail}'
        for p in self.programs
    ]
    failed = sum(not p.works for p in self.programs)
    lines.append(
        'Placement works here.' if self.works else
        f'{failed} of {len(self.programs)} programs failed; `gdp doctor` looks '
        'for the cause.')
    return '\n'.join(lines)

  def __repr__(self) -> str:
    return f'<Verification {str(self).splitlines()[-1]}>'

  def _repr_html_(self) -> str:
    return tables.paragraph(str(self).splitlines())


def verify(kinds: Sequence[str] | None = None) -> Verification:
  """Places three small programs over two logical devices of the machine.

  Each program has a process of its own for each kind of device. It runs first
  as TensorFlow places it and then placed, and its losses are compared. The two
  GPUs are halves of the first card. On CPUs, all GPUs are hidden. A kind takes
  less than a minute.

    assert gdp_grappler.verify().works

  Args:
    kinds: Kinds of devices, of `KINDS`; by default all that this machine has.

  Raises:
    GdpError: a kind is not in `KINDS`.
  """
  wrong = [kind for kind in kinds or () if kind not in KINDS]
  if wrong:
    raise errors.GdpError(f'There are no devices called "{wrong[0]}" to verify '
                          f'placement on. Give {" or ".join(KINDS)}.')
  if kinds is None:
    kinds = found_kinds()
  runs = [(program, kind) for kind in kinds for program in _PROGRAMS]
  done: list[Verified] = []
  with concurrent.futures.ThreadPoolExecutor(len(_PROGRAMS)) as pool:
    for program in pool.map(lambda run: _verified(*run), runs):
      done.append(program)
      progress.reached(
          len(done) / len(runs), f'{len(done)} of {len(runs)} done')
  return Verification(tuple(done))


def found_kinds() -> tuple[str, ...]:
  """Returns the kinds of devices, of `KINDS`, that this machine has."""
  try:
    has_gpu = calls.call(f'{_MODULE}:has_gpu', timeout_s=_TIMEOUT_S,
                         environment={environment.DISABLE: '0'})
  except calls.CallError:
    return KINDS[:1]  # The programs will fail too, and report the error.
  return KINDS if has_gpu else KINDS[:1]


def _verified(program: str, kind: str) -> Verified:
  begin = time.monotonic()
  variables = {environment.DISABLE: '0', **(_HIDDEN if kind == 'CPU' else {})}
  try:
    (losses, _), (placed, devices) = calls.call(f'{_MODULE}:{program}', kind,
                                                timeout_s=_TIMEOUT_S,
                                                environment=variables)
    works, detail = _judged(losses, placed, devices, kind)
  except calls.CallError as error:
    works, detail = False, f'it failed: {error}'
  return Verified(program, _PROGRAMS[program], kind, works, detail,
                  time.monotonic() - begin)


def _judged(losses: list[float], placed: list[float], devices: list[str],
            kind: str) -> tuple[bool, str]:
  """Returns whether a program works, and a text with the details.

  Args:
    losses: Losses of the program as TensorFlow places it.
    placed: Losses of the same steps of the placed program.
    devices: Devices that ran ops of the placed program.
    kind: Kind of the two devices.
  """
  if sum(device.startswith(kind) for device in devices) < 2:
    return False, (f'its ops stayed on {", ".join(devices) or "no device"}, as '
                   'if there were no plugin')
  differences = [
      abs(after - before) / max(abs(before), 1e-30)
      for before, after in zip(losses, placed)
  ]
  # A loss that is NaN makes this comparison false.
  close = all(difference <= _TOLERANCE for difference in differences)
  if len(losses) != len(placed) or not close:
    return False, (f'its losses became {_text(placed)} where they were '
                   f'{_text(losses)}')
  error = max(differences)
  agree = 'are the same' if not error else f'agree to {error:.1g}'
  return True, (f'really ran on {" and ".join(devices)}; its {len(losses)} '
                f'losses {agree}')


def _text(losses: list[float]) -> str:
  return ', '.join(f'{loss:.6g}' for loss in losses)
