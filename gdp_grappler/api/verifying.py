"""Places three small programs, and checks that they train as before.

A GPU multiplies in TF32 and sums in another order than a CPU, so losses on a
GPU cannot be compared with losses on a CPU. A program therefore runs twice on
one kind of device: as TensorFlow places it, and spread over two devices of that
kind. Float arithmetic stays on its kind of device (`graph.legality.rounding`).
Ops that may leave a GPU for the CPU are exact. On GPUs both runs have
deterministic ops, because results of other kernels differ from run to run.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import sys
import time
from typing import Callable, Sequence

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.processes import calls
from gdp_grappler.processes import worker_process
from gdp_grappler.reports import tables

_MODULE = 'gdp_grappler.api.verify_programs'
_PROGRAMS = {
    'keras_fit': "Keras' fit", 'training_loop': 'a tf.function that trains',
    'session': 'a v1 Session'
}
KINDS = ('CPU', 'GPU')
# The environment that hides all GPUs from a process.
_HIDDEN = {'CUDA_VISIBLE_DEVICES': '-1', 'HIP_VISIBLE_DEVICES': '-1'}
# The environment in which programs that run at a time can share a small card:
# TensorFlow allocates only the memory that a program uses.
_SHARED = {'TF_FORCE_GPU_ALLOW_GROWTH': 'true'}
_TIMEOUT_S = 600.  # On a machine that is busy with other things.
# Tolerance of losses. Placement changes no number, but kernels may round.
_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True)
class Verified:
  """The result of one program.

  Attributes:
    program: Name of the program.
    what: Description of the program for the table.
    kind: Kind of its devices, one of `KINDS`.
    works: Whether the program was placed and its losses agree.
    detail: Losses and devices, or why the program does not work.
    seconds: Seconds of its process.
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
    programs: Results of the programs.
  """

  programs: tuple[Verified, ...]

  @property
  def works(self) -> bool:
    """Whether all programs work."""
    return all(program.works for program in self.programs)

  def show(self) -> None:
    """Prints the results."""
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

  Each program runs in a process of its own for each kind of device, first as it
  is and then placed. Losses of the two runs are compared. The GPUs are logical
  GPUs of the first card. On the CPU all GPUs are hidden. Each kind takes less
  than a minute.

    assert gdp_grappler.verify().works

  Args:
    kinds: Kinds of devices, of `KINDS`, or one of them. None means those of
      this machine.

  Raises:
    GdpError: there is no kind, one is not in `KINDS`, or no process can be
      started.
  """
  if isinstance(kinds, str):
    kinds = [kinds]
  elif kinds is None:
    kinds = found_kinds()
  wrong = [f' called "{kind}"' for kind in kinds if kind not in KINDS]
  if wrong or not kinds:
    raise errors.GdpError(f'There are no devices{"".join(wrong[:1])} to verify '
                          f'placement on. Give {" or ".join(KINDS)}.')
  runs = [(program, kind) for kind in kinds for program in _PROGRAMS]
  done: list[Verified] = []
  started: list[worker_process.WorkerProcess] = []
  with concurrent.futures.ThreadPoolExecutor(len(_PROGRAMS)) as pool:
    try:
      for program in pool.map(lambda run: _verified(started.append, *run),
                              runs):
        done.append(program)
        progress.reached(
            len(done) / len(runs), f'{len(done)} of {len(runs)} done')
    except BaseException:
      # The pool waits for its threads, and they wait for the processes.
      pool.shutdown(wait=False, cancel_futures=True)
      for process in started:
        with contextlib.suppress(ProcessLookupError):  # It ends by itself.
          process.kill()
      raise
  return Verification(tuple(done))


def found_kinds() -> tuple[str, ...]:
  """Returns the kinds of `KINDS` that this machine has."""
  try:
    has_gpu = calls.call(f'{_MODULE}:has_gpu', timeout_s=_TIMEOUT_S,
                         environment={environment.DISABLE: '0'})
  except calls.CallError:
    return KINDS[:1]  # The programs will fail too, and report the error.
  return KINDS if has_gpu else KINDS[:1]


def _verified(started: Callable[[worker_process.WorkerProcess], None],
              program: str, kind: str) -> Verified:
  """Runs a program; `started` gets its process."""
  begin = time.monotonic()
  variables = {
      environment.DISABLE: '0', **(_HIDDEN if kind == 'CPU' else _SHARED)
  }
  try:
    (losses, _), (placed, devices) = calls.call(f'{_MODULE}:{program}', kind,
                                                timeout_s=_TIMEOUT_S,
                                                environment=variables,
                                                started=started)
    works, detail = _verdict(losses, placed, devices, kind)
  except calls.CallError as error:
    works, detail = False, f'it failed: {error}'
  return Verified(program, _PROGRAMS[program], kind, works, detail,
                  time.monotonic() - begin)


def _verdict(losses: list[float], placed: list[float], devices: list[str],
             kind: str) -> tuple[bool, str]:
  """Returns whether a program works, and the details.

  Args:
    losses: Losses as TensorFlow placed the program.
    placed: Losses of the same steps, placed.
    devices: Devices that had ops in the placed run.
    kind: Kind of the two devices.
  """
  if sum(device.startswith(kind) for device in devices) < 2:
    return False, (f'its ops stayed on {", ".join(devices) or "no device"}, as '
                   'if there were no plugin')
  differences = [
      abs(after - before) / max(abs(before), 1e-30)
      for before, after in zip(losses, placed)
  ]
  # NaN is not close to any number.
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
