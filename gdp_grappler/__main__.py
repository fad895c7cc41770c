"""`python -m gdp_grappler` is `gdp`."""

import sys

from gdp_grappler.bin import starting

if __name__ == '__main__':
  sys.exit(starting.gdp())
