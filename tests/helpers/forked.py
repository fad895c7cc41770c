"""Runs a console program again and again, but imports it once.

For what ends before anything is computed: bad flags, bad input. A program that
goes further needs an interpreter of its own; see `fresh`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from typing import NoReturn, Sequence

from helpers import fresh


def run(function: str, imports: Sequence[str],
        arguments: Sequence[Sequence[str]],
        timeout_s: float = 200) -> list[fresh.Finished]:
  """What each of the command lines left behind.

  Args:
    function: 'package.module:function', the program.
    imports: Modules that the program would import on the way.
    arguments: Of each run.
    timeout_s: For all of them.
  """
  done = subprocess.run(
      [sys.executable, '-P', '-m', 'helpers.forked', function, *imports],
      input=json.dumps(list(map(list, arguments))), text=True,
      env=fresh.environment(PYTHONPATH=os.pathsep.join(
          p for p in sys.path if p)), stdout=subprocess.PIPE, check=True,
      timeout=timeout_s)
  return [fresh.Finished(*fields) for fields in json.loads(done.stdout)]


def _main(function: str, *imports: str) -> None:
  module, name = function.split(':')
  for each in (module, *imports):
    importlib.import_module(each)
  program = getattr(sys.modules[module], name)
  print(json.dumps([_run(program, each) for each in json.load(sys.stdin)]))


def _run(program, arguments) -> tuple[int, str, str]:
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


def _become(program, arguments, out: int, err: int) -> NoReturn:
  os.dup2(out, 1)
  os.dup2(err, 2)
  sys.argv = ['program', *arguments]
  code = 1
  try:
    program()
    code = 0
  except SystemExit as end:
    code = end.code if isinstance(end.code, int) else int(end.code is not None)
  finally:
    with contextlib.suppress(OSError):
      sys.stdout.flush()
      sys.stderr.flush()
    os._exit(code)


if __name__ == '__main__':
  _main(*sys.argv[1:])
