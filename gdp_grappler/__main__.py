"""`python -m gdp_grappler` is `gdp`."""

import sys

from gdp_grappler.bin import gdp

if __name__ == '__main__':
  sys.exit(gdp.main())
