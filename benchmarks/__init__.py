"""Programs that make figures; installed nowhere.

Belongs here: what is run as `python -m benchmarks.NAME` from the repository.
Does not belong here: what users run (`gdp`, `gdp_bench`).
"""

import sys

if sys.argv[0] == '-m':
  # `python -m` starts a benchmark, whose imports take some seconds.
  print('benchmarks: loading TensorFlow and what else it needs',
        file=sys.stderr, flush=True)
