"""What the console programs call first; see `gdp_grappler.bin.starting`."""

from __future__ import annotations

from gdp_grappler.bin import starting


def gdp_bench() -> int | None:
  """The program of this name."""
  return starting.call('gdp_bench', 'placer_model.bin.gdp_bench', 'run')


def gdp_pretrain() -> int | None:
  """The program of this name."""
  return starting.call('gdp_pretrain', 'placer_model.bin.gdp_pretrain', 'run')


def gdp_train() -> int | None:
  """The program of this name."""
  return starting.call('gdp_train', 'placer_model.bin.gdp_train', 'run')
