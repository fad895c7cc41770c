"""Really places three small programs, and looks whether they still train."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import sys
import time

from gdp_grappler import environment
from gdp_grappler import progress
from gdp_grappler.processes import calls
from gdp_grappler.reports import tables

_MODULE = 'gdp_grappler.api.verify_programs'
_PROGRAMS = {
    'keras_fit': "Keras' fit", 'training_loop': 'a tf.function that trains',
    'session': 'a v1 Session'
}
_TIMEOUT_S = 600.  # On a machine that is busy with other things.
# Of a loss: placement changes no number, kernels may round otherwise.
_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True)
class Verified:
  """What became of one program.

  Attributes:
    program: Its name.
    what: What it is.
    works: Whether it was placed and its losses agree.
    detail: What was seen, or why it does not work.
    seconds: What its process took.
  """

  program: str
  what: str
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
        f'{"ok " if p.works else "BAD"}  {p.what}: {p.detail}'
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


def verify() -> Verification:
  """Places three small programs over two logical devices of the CPU.

  Each runs in a process of its own, first as it is and then placed, and its
  losses are compared. Takes less than a minute.

    assert gdp_grappler.verify().works
  """
  done: list[Verified] = []
  with concurrent.futures.ThreadPoolExecutor(len(_PROGRAMS)) as pool:
    for program in pool.map(_verified, _PROGRAMS):
      done.append(program)
      progress.reached(
          len(done) / len(_PROGRAMS), f'{len(done)} of {len(_PROGRAMS)} done')
  return Verification(tuple(done))


def _verified(program: str) -> Verified:
  begin = time.monotonic()
  try:
    (losses, _), (placed,
                  devices) = calls.call(f'{_MODULE}:{program}',
                                        timeout_s=_TIMEOUT_S,
                                        environment={environment.DISABLE: '0'})
    works, detail = _judged(losses, placed, devices)
  except calls.CallError as error:
    works, detail = False, f'it failed: {error}'
  return Verified(program, _PROGRAMS[program], works, detail,
                  time.monotonic() - begin)


def _judged(losses: list[float], placed: list[float],
            devices: list[str]) -> tuple[bool, str]:
  if len(devices) < 2:
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
