"""Recognizes graphs that a distribution strategy of TensorFlow has placed.

The pass leaves such graphs alone. So this module imports nothing that places
graphs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from gdp_grappler.graph import source_graph

# Replicas of a model already fill the devices. Their collectives wait for each
# other, so moving an op of one replica would stop all replicas.
_REPLICA_NAME = re.compile(r'(^|/)replica_\d+/')
_REPLICA_OP = re.compile(r'Collective.*|.*Nccl.*|TPU.*')

# Workers of a parameter server run steps of their own, which share variables.
_PARAMETER_SERVER = '/job:ps/'


def why_not(source: source_graph.SourceGraph) -> str:
  """Returns why a graph must stay as it was.

  Args:
    source: The graph, with the devices that TensorFlow chose.

  Returns:
    The reason; '' if no distribution strategy has placed the graph.
  """
  kinds = set(filter(_REPLICA_OP.fullmatch, set(source.op_types)))
  for node, op_type in zip(source.graph_def.node, source.op_types):
    if op_type in kinds or ('replica_' in node.name and
                            _REPLICA_NAME.search(node.name)):
      return ('it holds replicas of a distribution strategy '
              f'("{node.name}"). Switch gdp_placement off, or train without '
              'the strategy')
  server = next((d for d in source.devices if _PARAMETER_SERVER in d), '')
  if server:
    return (f'the program has parameter servers ("{server}"). Switch '
            'gdp_placement off, or train without the strategy')
  return ''
