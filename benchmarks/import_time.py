"""Measures the time that the plugin adds to `import tensorflow`.

Run it from the repository with `python -m benchmarks.import_time`, in an
environment where the package is installed. Fresh processes import TensorFlow,
in turn without the plugin and with the plugin switched off. The table has the
median of each, and the median of the ratios of pairs. With --page=FILE the
table replaces the table between two comments of a page in Markdown.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks import plugin
from benchmarks import tables
from gdp_grappler import environment
from gdp_grappler import progress
from gdp_grappler.processes import launching

_TITLE = 'Import'
_HEAD = ('pairs', 'without', 'switched off', 'ratio', 'lowest', 'highest')


def _table(count: int) -> tables.Table:
  plugin.require()
  _import_s()  # Files are in memory from now on.
  pairs = progress.of_each('importing TensorFlow both ways', range(count),
                           lambda _: (_import_s(disable='1'), _import_s()))
  out, off = (statistics.median(side) for side in zip(*pairs))
  ratios = sorted(b / a for a, b in pairs)
  row = {
      'pairs': count, 'without_s': out, 'switched_off_s': off,
      'ratio': statistics.median(ratios), 'lowest': ratios[0],
      'highest': ratios[-1]
  }
  return tables.Table('import tensorflow, measured', _HEAD, [[
      str(count), f'{out:.2f} s', f'{off:.2f} s',
      *(f'{row[key]:.3f}' for key in ('ratio', 'lowest', 'highest'))
  ]], [row])


def _import_s(disable: str = '0') -> float:
  start = time.perf_counter()
  subprocess.run([sys.executable, '-c', 'import tensorflow'], check=True,
                 stderr=subprocess.DEVNULL,
                 env=launching.environment({environment.DISABLE: disable}))
  return time.perf_counter() - start


main = tables.program('import_time', __doc__, _TITLE,
                      lambda given: _table(given.pairs),
                      tables.option('--pairs', type=int, default=7))

if __name__ == '__main__':
  sys.exit(main())
