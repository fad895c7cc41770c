"""Runs `tracing_worker` for graphs that exist only after they are traced.

The worker is a process of its own. So the caller's TensorFlow keeps its
devices, its memory and its Keras. (The code for training uses legacy Keras, but
the user's module decides what `tf.keras` is in the worker.)
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
_TIMEOUT_S = 1200.  # Seconds for tracing a model.
_ENVIRONMENT = {
    'KERAS_BACKEND': 'tensorflow', 'TF_FORCE_GPU_ALLOW_GROWTH': 'true'
}


def trace(kind: str, path: str, name: str, batch_size: int,
          tell: Callable[[str], None], architecture: str = '',
          tables: Mapping[str, int] | None = None) -> source_graph.SourceGraph:
  """Runs a worker that traces a model, and returns the graph.

  Args:
    kind: 'keras', 'function' or 'application'.
    path: Path or name of the model.
    name: Name of the graph.
    batch_size: Size of unknown first dimensions.
    tell: Function that is called with a line for each assumption.
    architecture: Architecture of the cards that the graph is for; see
      `architectures.of`.
    tables: Layers whose tables are split, with the number of parts.

  Raises:
    InvalidGraphError: the model cannot be loaded or traced.
  """
  # All cards of a generation get the same graph. So a kept graph is found by
  # the generation, not by the architecture.
  asked = kind, path, name, batch_size, gpu_rewrites.generation(
      architecture), tuple(sorted((tables or {}).items()))
  kept = trace_cache.place(asked, launching.environment(_ENVIRONMENT))
  answer = trace_cache.find(kept, path, tell)
  if answer is None:
    if kind == 'function':
      tell(f'{path}: its module is imported and the function called, with all '
           'that they do.')
    answer = _traced(path, asked)
    trace_cache.keep(kept, answer, tell)
  for note in answer['notes']:
    tell(f'{path}: {note}')
  if answer['error']:
    raise errors.InvalidGraphError(answer['error'])
  result = source_graph.from_meta_graph(
      meta_graph_pb2.MetaGraphDef.FromString(answer['graph']))
  graph_files.check_nodes(result.graph_def, path)
  return result


def _traced(path: str, asked: tuple[Any, ...]) -> dict[str, Any]:
  """Returns the worker's answer."""
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
