"""Runs the code cells of a notebook without a kernel.

  python -m benchmarks.showing.cells NOTEBOOK OUTPUTS

Writes a JSON list with the outputs of each code cell in the format nbformat 4.
There is no IPython: cells are plain Python, and the representation of a cell's
last expression is its output.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import pathlib
import pprint
import sys
from typing import Any


def run(sources: list[str]) -> list[list[dict[str, Any]]]:
  """Runs code cells that share their names, and returns their outputs.

  Args:
    sources: Sources of the cells, in order.

  Raises:
    Exception: a cell raises it.
  """
  names: dict[str, Any] = {'__name__': '__main__'}
  return [
      _outputs(source, f'<cell {number}>', names)
      for number, source in enumerate(sources, 1)
  ]


def _outputs(source: str, title: str, names: dict[str,
                                                  Any]) -> list[dict[str, Any]]:
  said = io.StringIO()
  with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    value = _value(source, title, names)
  outputs: list[dict[str, Any]] = []
  if said.getvalue():
    outputs.append({
        'output_type': 'stream', 'name': 'stdout',
        'text': _lines(said.getvalue())
    })
  if value is not None:
    outputs.append({
        'output_type': 'execute_result', 'metadata': {}, 'data': _shown(value)
    })
  return outputs


def _value(source: str, title: str, names: dict[str, Any]) -> Any:
  """Runs a cell, and returns the value of its last expression, or None."""
  # AutoGraph reads the source of a cell from `linecache`, as under IPython.
  linecache.cache[title] = (len(source), None, source.splitlines(True), title)
  body = ast.parse(source, title).body
  last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
  exec(compile(ast.Module(body, []), title, 'exec'), names)
  if last is None:
    return None
  assert isinstance(last, ast.Expr)
  return eval(compile(ast.Expression(last.value), title, 'eval'), names)


def _shown(value: Any) -> dict[str, list[str]]:
  data = {'text/plain': _lines(pprint.pformat(value, sort_dicts=False))}
  as_html = getattr(value, '_repr_html_', None)
  if as_html is not None:
    data['text/html'] = _lines(as_html())
  return data


def _lines(text: str) -> list[str]:
  return text.splitlines(keepends=True)


def main(argv: list[str]) -> int:
  """Runs the program. If a cell fails, prints its traceback."""
  notebook, outputs = map(pathlib.Path, argv)
  cells = json.loads(notebook.read_text(encoding='utf-8'))['cells']
  found = run([
      ''.join(cell['source']) for cell in cells if cell['cell_type'] == 'code'
  ])
  outputs.write_text(json.dumps(found), encoding='utf-8')
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
