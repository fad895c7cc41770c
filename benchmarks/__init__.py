"""Programs that make the figures of docs/. The package does not install them.

Belongs here: programs for `python -m benchmarks.NAME` in the repository.
Does not belong here: programs of users (`gdp`, `gdp_bench`).
"""

import sys

if sys.argv[0] == '-m':
  # `python -m` starts a benchmark, and its imports take some seconds.
  print('benchmarks: loading TensorFlow and what else it needs',
        file=sys.stderr, flush=True)
