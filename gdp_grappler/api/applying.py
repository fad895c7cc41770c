"""Makes the plugin follow a plan in this process."""

from __future__ import annotations

import os

from gdp_grappler import cache
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.graph import op_graph

# Number of plans in the cache folder above which the oldest are removed.
MOST_PLANS = 128
# Bytes of all these plans above which the oldest are removed.
MOST_BYTES = 512 << 20


def apply(graph: op_graph.OpGraph, placement: placement_lib.Placement,
          placed_by: str, layers: plan_lib.Layers,
          path: str | os.PathLike[str] | None) -> str:
  """Writes a plan file and sets the key 'plan' of the option to its path.

  Args:
    graph: The graph.
    placement: A placement of the graph.
    placed_by: Name of the placer or plan; see `plan.Plan`.
    layers: Devices by layer; see `plan.Plan`.
    path: Path of the plan file; None for a file in the cache folder.

  Returns:
    The path of the plan file.

  Raises:
    GdpError: the file cannot be written.
  """
  import tensorflow as tf
  from tensorflow.python.eager import context

  from gdp_grappler.plugin import switch
  if path is None:
    path = _keep(graph, placement, placed_by, layers)
  else:
    plan_lib.save(os.fspath(path), graph, placement, placed_by, layers)
  before = switch.value(context.context())
  others = before if isinstance(before, dict) else {}
  tf.config.optimizer.set_experimental_options(
      {switch.NAME: {**others, 'plan': os.fspath(path)}})
  return os.fspath(path)


def _keep(graph: op_graph.OpGraph, placement: placement_lib.Placement,
          placed_by: str, layers: plan_lib.Layers) -> str:
  """Writes a plan into the cache folder; only this user can read it."""
  # Decisions of the pass depend on the path, so a new plan gets a new path.
  digest = plan_lib.digest(graph, placement)
  path = cache.path('plans', f'{graph.fingerprint}-{digest}.json')
  plan_lib.save(str(path), graph, placement, placed_by, layers, private=True)
  cache.make_room(path.parent, MOST_PLANS, MOST_BYTES)
  return str(path)
