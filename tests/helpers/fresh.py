"""Runs programs in fresh interpreters, as a user starts them."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

from helpers import warm

PROGRAMS = pathlib.Path(__file__).parents[1] / 'e2e' / 'programs'


@dataclasses.dataclass(frozen=True)
class Finished:
  """The result of a program.

  Attributes:
    code: Exit code.
    stdout: Text on standard output.
    stderr: Text on standard error.
  """

  code: int
  stdout: str
  stderr: str

  @property
  def results(self) -> dict:
    """The JSON in the last line of standard output."""
    assert self.code == 0, self.stderr
    return json.loads(self.stdout.strip().splitlines()[-1])

  @property
  def notices(self) -> list[str]:
    """The lines that this package logged."""
    return [l for l in self.stderr.splitlines() if l.startswith('[gdp]')]


def environment(**changes: str) -> dict[str, str]:
  """Returns this process's variables without those of the package and Keras.

  `conftest.py` removes the same variables from the processes of the tests.
  """
  result = {
      key: value for key, value in os.environ.items()
      if not steers(key) and key != 'TF_USE_LEGACY_KERAS'
  }
  return {**result, 'TF_CPP_MIN_LOG_LEVEL': '3', **changes}


def environment_with_path(**changes: str) -> dict[str, str]:
  """Returns `environment`, with the import path of this process."""
  path = os.pathsep.join(p for p in sys.path if p)
  return environment(PYTHONPATH=path, **changes)


def error_line(done: Finished, program: str) -> str:
  """Returns the only line of a program that refused its input."""
  assert done.code == 2, done.stderr
  line, = done.stderr.strip().splitlines()
  assert line.startswith(f'{program}: error: ')
  return line


def steers(variable: str) -> bool:
  """Whether a variable configures the package, except the cache's folder."""
  return variable.startswith('GDP_') and variable != 'GDP_CACHE_DIR'


def run(program: str, *args: str, timeout_s: float = 280,
        **variables: str) -> Finished:
  """Runs one of `PROGRAMS` with more environment variables."""
  return _run([str(PROGRAMS / program), *args], timeout_s, variables)


def run_code(code: str, timeout_s: float = 120, folder=None,
             **variables: str) -> Finished:
  """Runs Python text with more environment variables.

  Args:
    code: The text; one that begins with `warm.MARK` may run in a fork.
    timeout_s: Time limit, in seconds.
    folder: Current folder, which is not searched for modules. By default the
      current folder of this process, which is searched.
    **variables: Environment variables to set.
  """
  # As in `conftest.py`.
  return _run([
      *(['-P'] if folder else []), '-c', code if code.startswith(warm.MARK) else
      f'import gc; gc.set_threshold(100_000)\n{code}'
  ], timeout_s, variables, folder)


def decoys(folder) -> None:
  """Writes broken packages with the names of ours to a folder."""
  for name in ('gdp_grappler', 'placer_model'):
    (folder / name).mkdir()
    (folder / name / '__init__.py').write_text('raise ImportError("a decoy")')


def _run(command, timeout_s, variables, folder=None) -> Finished:
  done = subprocess.run([sys.executable, *command],
                        env=environment(**variables), text=True, cwd=folder,
                        capture_output=True, timeout=timeout_s, check=False)
  return Finished(done.returncode, done.stdout, done.stderr)
