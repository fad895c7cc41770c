"""Traces programs as if there were a GPU.

Three things look for one: Keras, which calls cuDNN's recurrent kernels and
keeps `channels_first` where there is a GPU; TensorFlow's placer; and Grappler.
The first is told that there is one; Grappler is kept from the graph until
`gpu_rewrites` does the work of the other two. A graph with kernels that only
GPUs have stops at the placer; it is taken as it came there.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, Callable, Iterable, Iterator

import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.eager import context

from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.sources import gpu_rewrites
from gdp_grappler.graph.sources import inlining

_SWITCH = 'disable_meta_optimizer'
# What TensorFlow calls the ends of functions that it inlines.
_BORDERS = 'Func/'
_GIVEN = op_kinds.ARGUMENTS | op_kinds.BATCHES
# Of Keras 3: module, function, what it says of a machine with a GPU. Graphs are
# made, but layers that are called eagerly compute on what there is.
_KERAS: tuple[tuple[str, str, Callable[[], bool]], ...] = (
    ('keras.src.backend.tensorflow.rnn', '_is_gpu_available',
     lambda: not tf.executing_eagerly()),
    ('keras.src.backend.tensorflow.nn', '_cpu_only', tf.executing_eagerly),
)


def for_architecture(architecture: str, path: str,
                     collect: Callable[..., graph_pb2.GraphDef]) -> Any:
  """A function's graph as a program with such a card would have it.

  Args:
    architecture: As of `architectures.of`. '' leaves the graph to the devices
      that this process has; so does a process that has a GPU.
    path: Where the function is from, for messages.
    collect: Traces the function, and returns its graph after Grappler; with
      `unplaced`, before the placer if that fails.

  Raises:
    InvalidGraphError: as of `collect`, or Grappler cannot rewrite the graph.
  """
  if not architecture or tf.config.list_logical_devices('GPU'):
    return collect()
  with _as_with_a_gpu() as asked:
    graph_def = collect(unplaced=True)
  if inlining.has_calls(graph_def):
    graph_def = _without_borders(
        inlining.inline(graph_def, gpu_rewrites.kept(graph_def), path))
  return gpu_rewrites.rewritten(graph_def, gpu_rewrites.kept(graph_def),
                                architecture, path, asked)


def _without_borders(graph_def: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
  """Without the copies at which inlined functions begin and end.

  Grappler leaves them in place of arguments and results, and has them wait for
  what a caller has before its step begins; TensorFlow, which inlines before it
  places, does not.
  """
  borders = [n for n in graph_def.node if n.name.startswith(_BORDERS)]
  given = {n.name for n in graph_def.node if n.op in _GIVEN}
  at_once = {
      f'^{n.name}' for n in borders
      if n.op == 'NoOp' and given.issuperset(t[1:] for t in n.input)
  }
  sources = {
      n.name: n.input[0] for n in borders
      if n.op == 'Identity' and at_once.issuperset(n.input[1:])
  }

  @functools.cache
  def beyond(tensor: str) -> str:
    name = tensor.removesuffix(':0')
    return beyond(sources[name]) if name in sources else tensor

  result = graph_pb2.GraphDef()
  result.CopyFrom(graph_def)
  del result.node[:]
  for node in graph_def.node:
    if node.name not in sources:
      copied = result.node.add()
      copied.CopyFrom(node)
      del copied.input[:]
      copied.input.extend(_beyond_all(node.input, beyond))
  return result


def _beyond_all(tensors: Iterable[str], beyond: Callable[[str],
                                                         str]) -> list[str]:
  """Inputs without borders: what is waited for is waited for beyond them."""
  result = [beyond(t) for t in tensors if not t.startswith('^')]
  waited = (beyond(t[1:]) for t in tensors if t.startswith('^'))
  result += dict.fromkeys(f'^{name_parts.node_of(t)}' for t in waited)
  return result


@contextlib.contextmanager
def _as_with_a_gpu() -> Iterator[rewriter_config_pb2.RewriterConfig]:
  """Yields what the program asks of Grappler, which does nothing meanwhile."""
  asked = context.context().config.graph_options.rewrite_options
  before = []
  for module_name, name, answer in _KERAS:
    module = sys.modules.get(module_name)
    if module is not None and hasattr(module, name):
      before.append((module, name, getattr(module, name)))
      setattr(module, name, answer)
  tf.config.optimizer.set_experimental_options({_SWITCH: True})
  try:
    yield asked
  finally:
    tf.config.optimizer.set_experimental_options(
        {_SWITCH: asked.disable_meta_optimizer})
    for module, name, function in before:
      setattr(module, name, function)
