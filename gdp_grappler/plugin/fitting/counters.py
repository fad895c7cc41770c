"""Finds ops of a step that count steps, or advance states of random numbers.

At the end of a dataset of unknown length, Keras calls a step that finds no
batch. The step still makes the updates that do not need the batch. On another
device than the iterator, it would be chance whether such an update or the
failure comes first. So these ops stay where TensorFlow put them.
"""

from __future__ import annotations

import collections
from typing import Any, Container, Iterable, Mapping, Sequence

from tensorflow.python.framework import dtypes

from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.legality import pins
from gdp_grappler.graph.structure import variable_uses


def ops(nodes: Sequence[Any]) -> set[str]:
  """Returns the names of the ops that stay where TensorFlow put them.

  They are the updates of counters and random states that do not need the batch,
  and all ops that these updates depend on.

  Args:
    nodes: Nodes of a step, with its functions inlined.
  """
  batches = {node.name for node in nodes if node.op in op_kinds.BATCHES}
  if not batches:
    return set()  # The caller reads the batches, so each step has a batch.
  producers = {
      node.name: set(map(name_parts.node_of, node.input)) for node in nodes
  }
  readers = collections.defaultdict(set)
  for name, inputs in producers.items():
    for producer in inputs:
      readers[producer].add(name)
  updated = {
      node.name: name_parts.node_of(node.input[0]) for node in nodes
      if variable_uses.changes(node.op) and node.input
  }
  with_batch = _reached(batches, readers)
  trained = {updated[name] for name in with_batch & updated.keys()}
  counting = _may_count(nodes, trained)
  updates = {name for name, variable in updated.items() if variable in counting}
  return _reached(updates - with_batch, producers)


def _may_count(nodes: Iterable[Any], trained: Container[str]) -> set[str]:
  """Returns the names of variables that may count, or hold a random state.

  Weight decay updates weights without the batch, too, but weights have to move.
  So a variable of floats counts only if it is a scalar that the batch does not
  change, such as the divisor of a mean.

  Args:
    nodes: Nodes of a step.
    trained: Names of the variables that the batch changes.
  """
  result = set()
  for node in nodes:
    if not pins.is_variable_argument(node):
      continue
    is_integer = dtypes.as_dtype(
        node.attr['_handle_dtypes'].list.type[0]).is_integer
    if is_integer or _is_scalar(node) and node.name not in trained:
      result.add(node.name)
  return result


def _is_scalar(node: Any) -> bool:
  shapes = node.attr['_handle_shapes'].list.shape
  return len(shapes) == 1 and not shapes[0].unknown_rank and not shapes[0].dim


def _reached(start: Iterable[str],
             following: Mapping[str, Iterable[str]]) -> set[str]:
  """Returns the start nodes, and all nodes that a walk from them reaches."""
  waiting = list(start)
  result = set(waiting)
  while waiting:
    new = set(following[waiting.pop()]) - result
    result |= new
    waiting += new
  return result
