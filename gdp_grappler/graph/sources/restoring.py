"""Replaces fused ops that only CPUs have, in graphs from machines without GPU.

Grappler replaces several ops by one if a CPU has a kernel for it
(tensorflow/core/grappler/optimizers/remapper.cc, arithmetic_optimizer.cc). GPUs
have no such kernels. So the op would stay on the host, and its tensors would
travel there and back. This module replaces the op by several ops again. The
last one gets the name of the fused op, so its readers stay valid. The others
get names derived from it, because their original names are lost.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from typing import Callable, Iterable

from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.sources import unfused

_CPU_TYPE, _GPU_TYPE = (op_graph.DEVICE_TYPES.index(t) for t in ('CPU', 'GPU'))
# Prefix of op types that TensorFlow makes for itself.
_PRIVATE = '_'
# Fused ops that GPU kernels support, at least in float32: `patterns` in
# tensorflow/core/kernels/conv_ops_fused_impl.h and matmul_op_fused.cc. The
# kernels are registered for all fused ops, and reject others when they are
# created.
_FUSED_ON_GPU = {
    '_FusedConv2D':
        frozenset((('BiasAdd', 'Relu'),)),
    '_FusedMatMul':
        frozenset((('BiasAdd',), ('BiasAdd', 'Relu'), ('BiasAdd',
                                                       'GeluApproximate'))),
}


def restored(source: source_graph.SourceGraph,
             tell: Callable[[str], None]) -> source_graph.SourceGraph:
  """Restores ops that could run on GPUs before Grappler's rewrites.

  Args:
    source: Any graph. It is returned itself if there is nothing to restore.
    tell: Function that is called with a line about restored ops, and a line
      about ops that cannot be restored.
  """
  graph_def = source.graph_def
  only_cpus = [node for node in graph_def.node if is_for_cpus(node)]
  inside = [
      node for function in graph_def.library.function
      for node in function.node_def if is_for_cpus(node)
  ]
  if not only_cpus and not inside:
    return source
  result, left = _without(graph_def, {node.name for node in only_cpus})
  done = len(only_cpus) - len(left)
  if done:
    gone = collections.Counter(node.op for node in only_cpus)
    gone.subtract(node.op for node in left)
    tell(f'{source.name} was made without a GPU: ops that a GPU runs replace '
         f'{done} op{"s" * (done > 1)} that Grappler made for CPUs '
         f'({_listed(gone)}).')
  if left or inside:
    _tell_of_left(source.name, [*left, *inside], tell)
  return dataclasses.replace(source, graph_def=result)


def is_for_cpus(node: node_def_pb2.NodeDef) -> bool:
  """Whether TensorFlow made an op for CPUs and it has no kernel on GPUs."""
  if not node.op.startswith(_PRIVATE):
    return False
  allowed = kernels.allowed_types(node)
  if allowed[_CPU_TYPE] and not allowed[_GPU_TYPE]:
    return True
  known = _FUSED_ON_GPU.get(node.op)
  # An op that is on a GPU was made for a GPU.
  return (known is not None and 'GPU' not in node.device and
          unfused.fused_ops(node) not in known)


def _without(
    graph_def: graph_pb2.GraphDef, only_cpus: set[str]
) -> tuple[graph_pb2.GraphDef, list[node_def_pb2.NodeDef]]:
  """Returns the graph without ops for CPUs, and ops without replacement."""
  taken = {node.name for node in graph_def.node}
  result = graph_pb2.GraphDef(versions=graph_def.versions,
                              library=graph_def.library)
  left = []
  for node in graph_def.node:
    parts = unfused.parts(node, taken) if node.name in only_cpus else None
    if node.name in only_cpus and parts is None:
      left.append(node)
    result.node.extend(parts or (node,))
  return result, left


def _tell_of_left(name: str, left: Iterable[node_def_pb2.NodeDef],
                  tell: Callable[[str], None]) -> None:
  counts = collections.Counter(node.op for node in left)
  tell(
      f'{name} was made without a GPU: {counts.total()} ops that only CPUs '
      f'have ({_listed(counts)}) stay on CPU:0, and their tensors travel there '
      'and back. Capture the graph on a machine with a GPU, or give the model, '
      'which is then traced for GPUs.')


def _listed(counts: collections.Counter[str]) -> str:
  """Returns counts of ops as text: '40 _MklSwish, 2 _FusedConv2D, ...'."""
  found = [f'{count} {op}' for op, count in counts.most_common() if count > 0]
  most = 4
  shown = ', '.join(itertools.islice(found, most))
  return shown + ', ...' * (len(found) > most)
