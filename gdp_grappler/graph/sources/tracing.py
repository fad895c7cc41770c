"""Runs `tracing_worker` for graphs that only exist once TensorFlow traced them.

A process of its own, so that the caller's TensorFlow keeps its devices, its
memory and its Keras (the learning side runs legacy Keras; what `tf.keras` is in
a user's module is for the user to say).
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import gpu_rewrites
from gdp_grappler.graph.sources import graph_files
from gdp_grappler.graph.sources import trace_cache
from gdp_grappler.processes import calls
from gdp_grappler.processes import launching

_WORKER = 'gdp_grappler.graph.sources.tracing_worker:trace'
_TIMEOUT_S = 1200.
_ENVIRONMENT = {
    'KERAS_BACKEND': 'tensorflow', 'TF_FORCE_GPU_ALLOW_GROWTH': 'true'
}


def trace(kind: str, path: str, name: str, batch_size: int,
          tell: Callable[[str], None], architecture: str = '',
          tables: Mapping[str, int] | None = None) -> source_graph.SourceGraph:
  """Has a worker trace something and reads what it captured.

  Args:
    kind: 'keras', 'function' or 'application'.
    path: What to trace.
    name: What to call the graph.
    batch_size: For unknown first dimensions.
    tell: Hears one line for everything that was assumed.
    architecture: Of the cards that the graph is for, as of `architectures.of`.
    tables: Layers whose tables are in parts, with the number of these.

  Raises:
    InvalidGraphError: it cannot be loaded or traced.
  """
  # All cards of a generation have the same graph.
  asked = kind, path, name, batch_size, gpu_rewrites.generation(
      architecture), tuple(sorted((tables or {}).items()))
  kept = trace_cache.place(asked, launching.environment(_ENVIRONMENT))
  answer = trace_cache.find(kept, path, tell)
  if answer is None:
    if kind == 'function':
      tell(f'{path}: its module is imported and the function called, with all '
           'that they do.')
    answer = _traced(path, asked)
    trace_cache.keep(kept, path, answer, tell)
  for note in answer['notes']:
    tell(f'{path}: {note}')
  if answer['error']:
    raise errors.InvalidGraphError(answer['error'])
  result = source_graph.from_meta_graph(
      meta_graph_pb2.MetaGraphDef.FromString(answer['graph']))
  graph_files.check_nodes(result.graph_def, path)
  return result


def _traced(path: str, asked: tuple[Any, ...]) -> dict[str, Any]:
  """The worker's answer."""
  progress.doing(f'tracing {path}')
  try:
    answer: dict[str, Any] = calls.call(_WORKER, *asked, timeout_s=_TIMEOUT_S,
                                        environment=_ENVIRONMENT)
  except calls.CallError as error:
    raise errors.InvalidGraphError(
        f'Tracing {path} failed: {error}. Capture its graph with '
        f'{environment.CAPTURE_DIR} in your own program and give that.'
    ) from error
  return answer
