"""Really places three small programs, and looks whether they still train.

Like is compared with like: a GPU multiplies in TF32 and sums in another order
than a CPU, so a step on the one says nothing about a step on the other. A
program therefore runs twice on one kind of device, first as TensorFlow places
it and then spread over two devices of that kind. Float arithmetic stays on its
kind of device by itself (`graph.legality.rounding`); what may leave the GPUs
for the CPU is exact. On GPUs both runs have deterministic ops, as TensorFlow's
own kernels differ from run to run otherwise.
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
# What hides all GPUs from a process.
_HIDDEN = {'CUDA_VISIBLE_DEVICES': '-1', 'HIP_VISIBLE_DEVICES': '-1'}
_TIMEOUT_S = 600.  # On a machine that is busy with other things.
# Of a loss: placement changes no number, kernels may round otherwise.
_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True)
class Verified:
  """What became of one program.

  Attributes:
    program: Its name.
    what: What it is.
    kind: Of the devices that it ran on, of `KINDS`.
    works: Whether it was placed and its losses agree.
    detail: What was seen, or why it does not work.
    seconds: What its process took.
  """

  program: str
  what: str
  kind: str
  works: bool
  detail: str
  seconds: float


@dataclasses.dataclass(frozen=True)
class Verification:
  """What `verify` returns.

  Attributes:
    programs: One after the other.
  """

  programs: tuple[Verified, ...]

  @property
  def works(self) -> bool:
    """Whether all of them do."""
    return all(program.works for program in self.programs)

  def show(self) -> None:
    """Prints it."""
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

  Each runs in a process of its own for each kind of device, first as it is and
  then placed, and its losses are compared: those on GPUs with those on GPUs,
  those on the CPU, with all GPUs hidden, with those on the CPU. The GPUs are
  halves of the first card. Takes less than a minute per kind.

    assert gdp_grappler.verify().works

  Args:
    kinds: Of `KINDS`; by default what this machine has.

  Raises:
    GdpError: there is no such kind.
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
  """Those of `KINDS` that this machine has."""
  try:
    has_gpu = calls.call(f'{_MODULE}:has_gpu', timeout_s=_TIMEOUT_S,
                         environment={environment.DISABLE: '0'})
  except calls.CallError:
    return KINDS[:1]  # The programs will say what is wrong.
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
  """Whether a program works, and what was seen.

  Args:
    losses: As TensorFlow placed it.
    placed: Of the same steps, placed.
    devices: Those that had ops then.
    kind: Of which there were two.
  """
  if sum(device.startswith(kind) for device in devices) < 2:
    return False, (f'its ops stayed on {", ".join(devices) or "no device"}, as '
                   'if there were no plugin')
  differences = [
      abs(after - before) / max(abs(before), 1e-30)
      for before, after in zip(losses, placed)
  ]
  # What is no number is not close either.
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
