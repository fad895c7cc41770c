"""Builds workloads anew and counts their ops beside the papers'.

Run it from the repository, in an environment where the package is installed:

  python benchmarks/workload_counts.py            # all but the tiny ones
  python benchmarks/workload_counts.py rnnlm gnmt-8

Arguments are names or their beginnings. Prints a Markdown table, row by row:
ops as the pass receives them, those that the paper counts and the ratio, what
must stay together as groups, variables in GB, and what building takes: seconds
on the clock and of computing, and the most memory. A ratio off by more than
20 % is marked and makes the exit code 1.
"""

import pathlib
import resource
import sys
import tempfile
import time

from gdp_grappler import environment
from gdp_grappler.graph import graph_def_io
from gdp_grappler.processes import calls
from gdp_grappler.workloads import registry

_MOST_OFF = .2
_TIMEOUT_S = 3600.
_TITLES = ('workload', 'setting', 'ops', "paper's", 'ratio', 'groups',
           'variables GB', 'built in s', 'computing s', 'memory GB')


def row(name: str) -> tuple[list[str], bool]:
  """Cells, and whether the count is near the paper's."""
  workload = registry.get(name)
  start = time.monotonic()
  source = registry.source(name, tell=lambda line: None)
  seconds = time.monotonic() - start
  built = resource.getrusage(resource.RUSAGE_CHILDREN)
  graph = graph_def_io.read(source)
  ratio = graph.num_ops / workload.paper_ops if workload.paper_ops else 1.
  near = abs(ratio - 1) <= _MOST_OFF
  known = bool(workload.paper_ops)
  return [
      name, workload.setting, f'{graph.num_ops:,}',
      f'{workload.paper_ops:,}' if known else '-',
      f'{ratio:.2f}{"" if near else " (!)"}' if known else '-',
      f'{graph.num_groups:,}', f'{graph.param_bytes.sum() / 1e9:.2f}',
      f'{seconds:.0f}', f'{built.ru_utime + built.ru_stime:.0f}',
      f'{built.ru_maxrss * 1024 / 1e9:.2f}'
  ], near


def main(beginnings: list[str]) -> int:
  """Prints the table; 1 if a count is far from the paper's."""
  names = [
      n for n in registry.names()
      if '@' not in n and (not beginnings or n.startswith(tuple(beginnings)))
  ]
  print(f'| {" | ".join(_TITLES)} |\n|{"---|" * len(_TITLES)}', flush=True)
  far = 0
  for name in names:
    # A process for each: the memory of children is the most of all so far.
    with tempfile.TemporaryDirectory() as cache:
      cells, near = calls.call(f'{pathlib.Path(__file__).stem}:row', name,
                               timeout_s=_TIMEOUT_S,
                               environment={environment.CACHE_DIR: cache})
    far += not near
    print(f'| {" | ".join(cells)} |', flush=True)
  return int(far > 0)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
