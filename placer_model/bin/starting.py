"""The entry points of the console programs; see `gdp_grappler.bin.starting`."""

from __future__ import annotations

from gdp_grappler.bin import starting


def gdp_bench() -> int | None:
  """Runs the program `gdp_bench`."""
  return starting.call('gdp_bench', 'placer_model.bin.gdp_bench', 'run')


def gdp_pretrain() -> int | None:
  """Runs the program `gdp_pretrain`."""
  return starting.call('gdp_pretrain', 'placer_model.bin.gdp_pretrain', 'run')


def gdp_train() -> int | None:
  """Runs the program `gdp_train`."""
  return starting.call('gdp_train', 'placer_model.bin.gdp_train', 'run')
