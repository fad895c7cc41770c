"""gdp_pretrain with a small policy network, which is quick to trace."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import dataclasses

from gdp_grappler import quiet
from placer_model.bin import gdp_pretrain

with quiet.stderr_held():  # As the program imports it.
  from placer_model.pretraining.placements import config
  from placer_model.pretraining.placements import run as _  # noqa: F401


def run() -> None:
  """Runs the console script."""
  small = config.CONFIGS['small']
  network = small.network.replace(graph_layers=1, transformer_layers=0,
                                  superposition=False)
  config.CONFIGS['small'] = dataclasses.replace(small, network=network)
  gdp_pretrain.run()
