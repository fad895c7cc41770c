"""Builds workloads, and compares the numbers of their ops with the papers.

Run it from the repository, in an environment where the package is installed:

  python -m benchmarks.workload_counts            # all but the tiny ones
  python -m benchmarks.workload_counts rnnlm gnmt-8

Arguments are names of workloads or their beginnings. Prints for each workload
its ops as the pass receives them, the ops in the paper and the ratio, groups
(ops that stay together), variables in GB, wall-clock and processor seconds of
building, and the peak of memory. A ratio off by more than 20 % is marked and
makes the exit code 1.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from typing import Any, Sequence

from benchmarks import tables
from gdp_grappler import environment
from gdp_grappler import progress
from gdp_grappler.graph import graph_def_io
from gdp_grappler.processes import calls
from gdp_grappler.workloads import registry

_MOST_OFF = .2  # A larger relative difference from the paper's count is marked.
_TIMEOUT_S = 3600.  # Seconds for making one workload.
_TITLE = 'Ops of workloads'
_HEAD = ('workload', 'setting', 'ops', "paper's", 'ratio', 'groups',
         'variables GB', 'built in s', 'computing s', 'memory GB')


def row(name: str) -> dict[str, Any]:
  """Returns the row of a workload, counted in a process of its own."""
  workload = registry.get(name)
  start = time.monotonic()
  source = registry.source(name, tell=lambda line: None)
  seconds = time.monotonic() - start
  built = resource.getrusage(resource.RUSAGE_CHILDREN)
  graph = graph_def_io.read(source)
  return {
      'workload': name, 'setting': workload.setting, 'ops': graph.num_ops,
      'paper_ops': workload.paper_ops, 'groups': graph.num_groups,
      'variable_bytes': int(graph.param_bytes.sum()), 'built_s': seconds,
      'computing_s': built.ru_utime + built.ru_stime,
      'memory_bytes': built.ru_maxrss * 1024
  }


def _built(name: str) -> dict[str, Any]:
  # One process each, because the reported memory of children is a maximum.
  with tempfile.TemporaryDirectory() as cache:
    return calls.call(f'{__package__}.workload_counts:row', name,
                      timeout_s=_TIMEOUT_S,
                      environment={environment.CACHE_DIR: cache})


def _is_near(found: dict[str, Any]) -> bool:
  """Whether the count is near the paper's, or the paper has none."""
  paper = found['paper_ops']
  return not paper or abs(found['ops'] / paper - 1) <= _MOST_OFF


def _cells(found: dict[str, Any]) -> list[str]:
  paper, mark = found['paper_ops'], '' if _is_near(found) else ' (!)'
  return [
      found['workload'], found['setting'], f'{found["ops"]:,}',
      f'{paper:,}' if paper else '-',
      f'{found["ops"] / paper:.2f}{mark}' if paper else '-',
      f'{found["groups"]:,}', f'{found["variable_bytes"] / 1e9:.2f}',
      f'{found["built_s"]:.0f}', f'{found["computing_s"]:.0f}',
      f'{found["memory_bytes"] / 1e9:.2f}'
  ]


def _table(names: Sequence[str]) -> tables.Table:
  rows = progress.of_each('building', names, _built)
  return tables.Table('As the Grappler pass receives them', _HEAD,
                      [_cells(found) for found in rows], rows,
                      fails=not all(map(_is_near, rows)))


def main(argv: Sequence[str] | None = None) -> int:
  """Prints the table or the list.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, 1 if a count is far from the paper's, or 2 for bad input.
  """
  parser = tables.parser('workload_counts', __doc__)
  parser.add_argument('beginnings', nargs='*', metavar='NAME')
  arguments = tables.parse(parser, argv)
  names = [
      name for name in registry.names() if '@' not in name and
      (not arguments.beginnings or name.startswith(tuple(arguments.beginnings)))
  ]
  if not names:
    parser.error(f'no workload is called {" or ".join(arguments.beginnings)}; '
                 f'there are {", ".join(registry.names())}')
  return tables.show(arguments, _TITLE, lambda: _table(names))


if __name__ == '__main__':
  sys.exit(main())
