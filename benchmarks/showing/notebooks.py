"""Runs notebooks, each in a process of its own, and keeps their outputs.

Run it from the repository:

  python -m benchmarks.showing.notebooks NOTEBOOK ...

Without a NOTEBOOK, runs those of docs/notebooks. A notebook runs in an empty
folder. If it fails, it stays as it was, its traceback is printed, and the exit
code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, Sequence

from benchmarks.showing import cells
from gdp_grappler import files

_TOP = pathlib.Path(__file__).resolve().parents[2]
_TIMEOUT_S = 900.  # Seconds for one notebook.


def run(path: pathlib.Path) -> str:
  """Runs a notebook and replaces its outputs.

  Args:
    path: A notebook of nbformat 4.

  Returns:
    '', or the reason of a failure. The notebook then stays as it was.

  Raises:
    GdpError: it cannot be written.
  """
  notebook = json.loads(path.read_text(encoding='utf-8'))
  with tempfile.TemporaryDirectory() as folder:
    outputs = pathlib.Path(folder, 'outputs.json')
    work = pathlib.Path(folder, 'work')
    work.mkdir()
    # Runs the file with -P, so that cells import the installed packages and not
    # the modules in the file's folder.
    command = [
        sys.executable, '-P', cells.__file__,
        str(path.resolve()),
        str(outputs)
    ]
    try:
      done = subprocess.run(command, cwd=work, capture_output=True, text=True,
                            env=os.environ | {'TF_CPP_MIN_LOG_LEVEL': '3'},
                            timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
      return f'It takes longer than {_TIMEOUT_S:g} s.'
    if done.returncode:
      return done.stderr
    _fill(notebook, json.loads(outputs.read_text(encoding='utf-8')))
  files.write_atomically(path, as_text(notebook))
  return ''


def as_text(notebook: dict[str, Any]) -> str:
  """Returns the text of a notebook as Jupyter's programs write it."""
  return json.dumps(notebook, indent=1, ensure_ascii=False) + '\n'


def _fill(notebook: dict[str, Any], outputs: list[list[dict[str,
                                                            Any]]]) -> None:
  code = [c for c in notebook['cells'] if c['cell_type'] == 'code']
  for number, (cell, shown) in enumerate(zip(code, outputs), 1):
    cell['execution_count'] = number
    cell['outputs'] = [
        output | ({'execution_count': number}
                  if output['output_type'] == 'execute_result' else {})
        for output in shown
    ]


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the program; the code is 1 if a notebook failed."""
  parser = argparse.ArgumentParser(
      prog='notebooks', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('notebook', nargs='*', type=pathlib.Path)
  paths = parser.parse_args(argv).notebook or sorted(
      (_TOP / 'docs/notebooks').glob('*.ipynb'))
  failed = False
  for path in paths:
    print(f'{path.name} ...', flush=True)
    if error := run(path):
      failed = True
      print(f'{path.name} failed:\n{error}', file=sys.stderr)
  return int(failed)


if __name__ == '__main__':
  sys.exit(main())
