"""A step whose loop TensorFlow has divided, as after variables have moved."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Sequence

from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import source_graph
from helpers import graph_defs

# Variables of the layer `lstm`, which its loop reads.
WEIGHTS = ('unknown_0', 'unknown_1', 'unknown_2')
_OF_LOOPS = op_kinds.CONTROL_FLOW
_STEP = pathlib.Path(__file__).parents[1] / 'testdata/lstm_train_step.pb'


def source(**homes: str) -> source_graph.SourceGraph:
  """Returns a training step of an LSTM on CPU:0, with some variables elsewhere.

  Ops that take the handle of a variable are on the variable's device.

  Args:
    **homes: Devices of variables, by the names in `WEIGHTS`.
  """
  meta_graph = meta_graph_pb2.MetaGraphDef.FromString(_STEP.read_bytes())
  result = dataclasses.replace(source_graph.from_meta_graph(meta_graph),
                               devices=tuple(map(graph_defs.CPU, range(3))))
  device = dict(homes)
  # Nodes come after their inputs, except for the back edges of loops.
  for node in result.graph_def.node:
    inputs = {name.partition(':')[0] for name in node.input}
    if node.op in ('Enter', 'ReadVariableOp') or 'Assign' in node.op:
      for name in inputs & device.keys():
        device.setdefault(node.name, device[name])
  for node in result.graph_def.node:
    node.device = device.get(node.name, node.device)
  return result


def loop_devices(op_types: Sequence[str], devices: Sequence[str]) -> set[str]:
  """Returns the devices of the loops of `lstm` and of its gradient.

  Args:
    op_types: [N], types of ops.
    devices: [N], devices of ops.
  """
  return {d for kind, d in zip(op_types, devices) if kind in _OF_LOOPS}
