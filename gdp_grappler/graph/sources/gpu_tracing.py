"""Traces programs as if the machine had a GPU.

Three parts look for a GPU: Keras, which calls cuDNN's recurrent kernels and
keeps `channels_first` if there is a GPU; TensorFlow's placer; and Grappler.
Keras' checks are replaced by functions that report a GPU. Grappler is off while
a program is traced, and `gpu_rewrites` does the work of the placer and of
Grappler. If a graph has kernels that only GPUs have, the placer fails. Then the
graph before the placer is used.
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
# Prefix of the nodes at which inlined functions begin and end.
_BORDERS = 'Func/'
_GIVEN = op_kinds.ARGUMENTS | op_kinds.BATCHES
# Checks of Keras 3: module, function, and its result on a machine with a GPU.
# Only graphs are made for a GPU. Layers that are called eagerly run on the
# machine's own devices.
_KERAS: tuple[tuple[str, str, Callable[[], bool]], ...] = (
    ('keras.src.backend.tensorflow.rnn', '_is_gpu_available',
     lambda: not tf.executing_eagerly()),
    ('keras.src.backend.tensorflow.nn', '_cpu_only', tf.executing_eagerly),
)


def for_architecture(architecture: str, path: str,
                     collect: Callable[..., graph_pb2.GraphDef]) -> Any:
  """Returns a function's graph as in a program with a card of an architecture.

  Args:
    architecture: See `architectures.of`. If it is '', or if this process has a
      GPU, the graph is that of this process.
    path: Path or name of the function, for messages.
    collect: Function that traces, and returns the graph after Grappler. With
      `unplaced`, it returns the graph before the placer if the placer fails.

  Raises:
    InvalidGraphError: `collect` raised it, or Grappler cannot rewrite the
      graph.
  """
  if not architecture or tf.config.list_logical_devices('GPU'):
    return collect()
  with _gpu_environment() as asked:
    graph_def = collect(unplaced=True)
  if inlining.has_calls(graph_def):
    graph_def = _without_borders(
        inlining.inline(graph_def, gpu_rewrites.kept(graph_def), path))
  return gpu_rewrites.rewritten(graph_def, gpu_rewrites.kept(graph_def),
                                architecture, path, asked)


def _without_borders(graph_def: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
  """Removes the Identity nodes at which inlined functions begin and end.

  Grappler adds them in place of arguments and results. They wait for inputs
  that exist before the step begins. TensorFlow inlines before it places, and
  adds no such nodes.
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
      copied.input.extend(_without_border_inputs(node.input, beyond))
  return result


def _without_border_inputs(tensors: Iterable[str],
                           beyond: Callable[[str], str]) -> list[str]:
  """Replaces border nodes among inputs by the nodes behind them."""
  result = [beyond(t) for t in tensors if not t.startswith('^')]
  waited = (beyond(t[1:]) for t in tensors if t.startswith('^'))
  result += dict.fromkeys(f'^{name_parts.node_of(t)}' for t in waited)
  return result


@contextlib.contextmanager
def _gpu_environment() -> Iterator[rewriter_config_pb2.RewriterConfig]:
  """Turns Grappler off, and yields the program's configuration of Grappler."""
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
