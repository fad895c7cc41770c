"""Runs a console program again and again, but imports it once.

For what is told apart by its arguments alone: bad flags, bad input, runs on
small models. What users see of a fresh start is of `fresh`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Callable, NoReturn, Sequence

from helpers import fresh


def run(function: str, imports: Sequence[str],
        arguments: Sequence[Sequence[str]], timeout_s: float = 200,
        folder: pathlib.Path | None = None) -> list[fresh.Finished]:
  """What each of the command lines left behind.

  Args:
    function: 'package.module:function', the program.
    imports: Modules that the program would import on the way.
    arguments: Of each run.
    timeout_s: For all of them.
    folder: To run in and to import from first; None for where the tests run.
  """
  path = [str(folder)] if folder else []
  path += [p for p in sys.path if p]
  done = subprocess.run(
      [sys.executable, '-P', '-m', 'helpers.forked', function, *imports],
      input=json.dumps(list(map(list, arguments))), text=True, cwd=folder,
      env=fresh.environment(PYTHONPATH=os.pathsep.join(path)),
      stdout=subprocess.PIPE, check=True, timeout=timeout_s)
  return [fresh.Finished(*fields) for fields in json.loads(done.stdout)]


def _main(function: str, *imports: str) -> None:
  module, name = function.split(':')
  for each in (module, *imports):
    importlib.import_module(each)
  program = getattr(sys.modules[module], name)
  print(json.dumps([_run(program, each) for each in json.load(sys.stdin)]))


def _run(program: Callable[[], int | None],
         arguments: Sequence[str]) -> tuple[int, str, str]:
  with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
    child = os.fork()
    if not child:
      _become(program, arguments, out.fileno(), err.fileno())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in (out, err):
      file.seek(0)
      texts.append(file.read().decode())
  return code, *texts


def _become(program: Callable[[], int | None], arguments: Sequence[str],
            out: int, err: int) -> NoReturn:
  os.dup2(out, 1)
  os.dup2(err, 2)
  sys.argv = ['program', *arguments]
  code = 1
  try:
    code = program() or 0
  except SystemExit as end:
    code = end.code if isinstance(end.code, int) else int(end.code is not None)
  finally:
    with contextlib.suppress(OSError):
      sys.stdout.flush()
      sys.stderr.flush()
    os._exit(code)


if __name__ == '__main__':
  _main(*sys.argv[1:])
