"""gdp_bench for `forked`; all runs share the process that loads graphs."""

from __future__ import annotations

import contextlib

# Some modules are imported here so that the forked runs need not import them.
from matplotlib.backends import backend_agg  # noqa: F401

from placer_model.benchmark import loader as loader_lib
from placer_model.benchmark import pictures  # noqa: F401
from placer_model.benchmark import runner  # noqa: F401
from placer_model.bin import gdp_bench

_LOADER = loader_lib.Loader()
_LOADER.workloads()  # Starts the process.


def run() -> None:
  """Runs the console script."""
  loader_lib.Loader = lambda: contextlib.nullcontext(_LOADER)  # type: ignore
  gdp_bench.run()
