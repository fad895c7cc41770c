"""What a child's interpreter runs: one function; see `launching.command`."""

from __future__ import annotations

import json
import sys

from gdp_grappler.processes import launching


def main(function: str, *arguments: str) -> None:
  """Calls a function.

  Args:
    function: 'package.module:function'.
    *arguments: Its arguments as JSON.
  """
  launching.resolve(function)(*map(json.loads, arguments))


if __name__ == '__main__':
  main(*sys.argv[1:])
