"""Whatever a user calls a graph -> SourceGraph.

The kind is told by content, not by the name of the file: a graph captured by
the pass, a MetaGraph, a GraphDef, a SavedModel or a saved Keras model. A name
of the form `module:function` stands for a function that returns a Keras model,
`keras_applications:EfficientNetB0` for any model of `keras.applications`, with
random weights.

A Keras model becomes its training step, and a SavedModel the function behind
its signature, both as a custom Grappler pass receives them: functions inlined,
loops lowered, Grappler's own rewrites done. GraphDefs and MetaGraphs keep
their nodes; only function calls are inlined.
"""

from __future__ import annotations

import pathlib
import re
from typing import Callable

from absl import logging

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.costed import cost_graph
from gdp_grappler.graph.costed import graph_json
from gdp_grappler.graph.sources import graph_files
from gdp_grappler.graph.sources import pruning
from gdp_grappler.graph.sources import tracing

DEFAULT_BATCH_SIZE = 32
_APPLICATIONS = 'keras_applications:'
_MODULE_FUNCTION = re.compile(r'[^\W\d][\w.]*:[^\W\d][\w.]*')


def load(
    path: str, name: str | None = None, *, batch_size: int = DEFAULT_BATCH_SIZE,
    signature: str | None = None, prune: bool = True,
    tell: Callable[[str], None] = logging.info) -> source_graph.SourceGraph:
  """Reads a graph.

  Args:
    path: A file, a SavedModel directory, `module:function`; the current
      directory is searched for the module; or `keras_applications:NAME`.
    name: What to call the graph; by default what the file says or is called.
    batch_size: Stands for the unknown first dimension of inputs of Keras
      models and SavedModels.
    signature: Of a SavedModel; by default 'serving_default' or the only one.
    prune: Whether to leave out of GraphDefs and MetaGraphs what the fetches do
      not need, as TensorFlow does before it runs them.
    tell: Hears one line for everything that was assumed, such as a loss for a
      model that was not compiled.

  Raises:
    InvalidGraphError: there is no graph, or it cannot be used.
  """
  file = pathlib.Path(path)
  label = name or _label(path)
  if not file.exists() and _MODULE_FUNCTION.fullmatch(path):
    kind = 'application' if path.startswith(_APPLICATIONS) else 'function'
    return tracing.trace(kind, path, label, batch_size, None, tell)
  if file.is_dir():
    return tracing.trace('saved_model', _saved_model_dir(file), label,
                         batch_size, signature, tell)
  _refuse_given(file)
  content = graph_files.read(path)
  if content.kind == 'keras':
    return tracing.trace('keras', path, label, batch_size, None, tell)
  if content.kind == 'saved_model':
    return tracing.trace('saved_model', str(file.parent), label, batch_size,
                         signature, tell)
  return _from_protos(content, path, name, label, prune)


def _from_protos(content, path, name, label, prune):
  """A SourceGraph from a GraphDef or a MetaGraphDef."""
  graph_def = content.message.graph_def
  graph_files.check_nodes(graph_def, path)
  if content.kind == 'captured':
    captured = source_graph.from_meta_graph(content.message)
    result = source_graph.SourceGraph(
        name or captured.name, graph_def, captured.feeds, captured.fetches or
        pruning.fetches(graph_def), captured.devices)
    graph_files.check_ends(result, path)
    return result
  result = source_graph.SourceGraph(
      label, graph_def, pruning.feeds(graph_def),
      pruning.declared_fetches(content.message) or pruning.fetches(graph_def))
  graph_files.check_ends(result, path)
  return pruning.simplify(result, path, prune)


def _refuse_given(file):
  """Raises an error for a graph that is costs alone."""
  data = file.read_bytes() if file.is_file() else b''
  if graph_json.is_graph_json(data) or cost_graph.is_cost_graph(data):
    raise errors.InvalidGraphError(
        f'{file} is a graph of costs without TensorFlow ops (JSON or '
        'CostGraphDef), which cannot be run, profiled or trained on as a '
        'GraphDef. `gdp place` and `gdp simulate` take it; here give the graph '
        'that it was made from.')


def _saved_model_dir(directory: pathlib.Path) -> str:
  if not any((directory / f'saved_model.{ending}').is_file()
             for ending in ('pb', 'pbtxt')):
    raise errors.InvalidGraphError(
        f'{directory} is a directory without saved_model.pb, so it is no '
        'SavedModel. Give a SavedModel directory or a file in it.')
  return str(directory)


def _label(path: str) -> str:
  if _MODULE_FUNCTION.fullmatch(path) and not pathlib.Path(path).exists():
    stem = path.rsplit(':', 1)[1]
  else:
    file = pathlib.Path(path).resolve()
    if file.name in ('saved_model.pb', 'saved_model.pbtxt'):
      file = file.parent
    stem = file.name if file.is_dir() else file.stem
  return re.sub(r'[^\w.-]+', '_', stem) or 'graph'
