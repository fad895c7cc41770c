"""Places every op of a TensorFlow graph on the right device.

Belongs here: everything that is needed to place a graph in a user's program.
The package needs only the standard library, numpy, TensorFlow and its packages
(absl, protobuf, wrapt), and rich. Other libraries are optional (`extras`). Does
not belong here: the training of networks (`placer_model`).

`import tensorflow` imports this package in every program. So each public name
is loaded when it is first used.
"""

import importlib
import typing

__version__ = '0.1.0'

# Public name -> the module that defines it.
_PUBLIC = {
    'Cluster': 'gdp_grappler.cluster.cluster',
    'Device': 'gdp_grappler.cluster.cluster',
    'Link': 'gdp_grappler.cluster.cluster',
    'resolve': 'gdp_grappler.cluster.resolve',
    'Placement': 'gdp_grappler.cluster.placement',
    'Evaluation': 'gdp_grappler.evaluation.evaluator',
    'Simulator': 'gdp_grappler.evaluation.simulation.simulator',
    'GdpError': 'gdp_grappler.errors',
    'PlacementCallback': 'gdp_grappler.plugin.fitting.callback',
    'OpGraph': 'gdp_grappler.graph.op_graph',
    'PlacedStep': 'gdp_grappler.api.placed_step',
    'Problem': 'gdp_grappler.placers.placer',
    'compare': 'gdp_grappler.api.comparing',
    'diff': 'gdp_grappler.api.differing',
    'explain': 'gdp_grappler.api.explaining',
    'leave_alone': 'gdp_grappler.plugin.scopes',
    'made_on_host': 'gdp_grappler.plugin.fitting.host_creation',
    'load_plan': 'gdp_grappler.api.placing',
    'pin': 'gdp_grappler.plugin.scopes',
    'place': 'gdp_grappler.api.placing',
    'relocate': 'gdp_grappler.plugin.fitting.relocate_api',
    'report': 'gdp_grappler.api.reporting',
    'simulate': 'gdp_grappler.api.placing',
    'split': 'gdp_grappler.plugin.splitting',
    'split_tables': 'gdp_grappler.sharding.scope',
    'verify': 'gdp_grappler.api.verifying',
    'without_weights': 'gdp_grappler.graph.sources.without_weights',
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> typing.Any:
  if name not in _PUBLIC:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
  return sorted({*globals(), *_PUBLIC})
