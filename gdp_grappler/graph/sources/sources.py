"""Reads a graph of any kind by its path or name.

The kind is found from the content, not from the name of the file: a graph
captured by the pass, a MetaGraph, a GraphDef, a SavedModel or a saved Keras
model. A name of the form `module:function` is a function that returns a Keras
model. `keras_applications:EfficientNetB0` is a model of `keras.applications`
with random weights.

A Keras model becomes its training step as a custom Grappler pass gets it:
functions inlined, loops lowered, Grappler's own rewrites done. A SavedModel
becomes the function of its signature, read and not run: functions inlined,
loops lowered. GraphDefs and MetaGraphs keep their nodes; only function calls
are inlined.
"""

from __future__ import annotations

import pathlib
import re
from typing import Any, Callable, Mapping

from absl import logging
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import source_graph
from gdp_grappler.graph import start_order
from gdp_grappler.graph.costed import cost_graph
from gdp_grappler.graph.costed import graph_json
from gdp_grappler.graph.legality import asked
from gdp_grappler.graph.sources import captured_folders
from gdp_grappler.graph.sources import graph_files
from gdp_grappler.graph.sources import input_shapes
from gdp_grappler.graph.sources import origin as origin_lib
from gdp_grappler.graph.sources import pruning
from gdp_grappler.graph.sources import saved_models
from gdp_grappler.graph.sources import tracing


def load(path: str, **options: Any) -> source_graph.SourceGraph:
  """Reads a graph by its path or name.

  Args:
    path: Path or name of the graph; see `Origin`.
    **options: Arguments of `read`.

  Raises:
    InvalidGraphError: there is no graph, or it cannot be used.
  """
  return read(origin_lib.Origin(path), **options)


def read(
    origin: origin_lib.Origin, *, name: str | None = None,
    batch_size: int = assumptions.DEFAULT_BATCH_SIZE,
    signature: str | None = None, shapes: input_shapes.Shapes = (),
    architecture: str = '', tables: Mapping[str, int] | None = None,
    tell: Callable[[str], None] = logging.info) -> source_graph.SourceGraph:
  """Reads a graph.

  Args:
    origin: A file, a SavedModel directory, `module:function` or
      `keras_applications:NAME`. The module is also searched in the current
      directory.
    name: Name of the graph; by default the one in the file or the file's own.
    batch_size: Size of the unknown first dimension of inputs of Keras models
      and SavedModels. Other graphs keep unknown dimensions, and a line tells
      the assumed size.
    signature: Signature of a SavedModel; None for 'serving_default' or the only
      one.
    shapes: Names and shapes of a SavedModel's inputs.
    architecture: Architecture of the cards that the graph is for (see
      `architectures.of`); '' for CPUs. Models are traced for such cards.
    tables: Names of layers whose tables are split when a model is traced, with
      the number of parts.
    tell: Function that is called with a line for each assumption, such as a
      loss for a model that was not compiled.

  Raises:
    InvalidGraphError: there is no graph, or it cannot be used.
  """
  path = origin.text
  content = None if origin.names_function else _content(origin, tell)
  if (signature or shapes) and (content is None or
                                content.kind != 'saved_model'):
    raise errors.InvalidGraphError(
        f'{path} is no SavedModel, so it has no signature whose inputs have '
        f'shapes. Leave out {spelling.argument("signature")} and '
        f'{spelling.argument("shape")}.')
  label = name or _label(origin)
  if content is None or content.kind == 'keras':
    kind = ('keras' if content else 'application'
            if path.startswith(origin_lib.APPLICATIONS) else 'function')
    return tracing.trace(kind, path, label, batch_size, tell, architecture,
                         tables)
  if content.kind == 'saved_model':
    return asked.of_file(
        saved_models.read(content.message, path, label, batch_size, signature,
                          tell, shapes))
  result = (_captured(content.message, path, name) if content.kind == 'captured'
            else _simplified(content.message, path, label, prune=True))
  input_shapes.tell_assumed(result, path, batch_size, tell)
  return result


def _simplified(message: meta_graph_pb2.MetaGraphDef, path: str, label: str,
                prune: bool) -> source_graph.SourceGraph:
  """Returns a graph, if `prune` as TensorFlow prunes it before it runs."""
  return asked.of_file(
      pruning.simplify(of_meta_graph(message, path, label), path, prune))


def _content(origin: origin_lib.Origin,
             tell: Callable[[str], None]) -> graph_files.Content:
  """Returns the content of a file, or of the file that represents a folder."""
  if origin.is_folder:
    origin = _in_directory(origin.path, tell)
  _refuse_given(origin)
  return graph_files.read(origin)


def is_traced(origin: origin_lib.Origin) -> bool:
  """Whether a graph is that of a Keras model, which is made anew to be read.

  Raises:
    InvalidGraphError: there is no graph.
  """
  return origin.names_function or (not origin.is_folder and
                                   graph_files.read(origin).kind == 'keras')


def unpruned(origin: origin_lib.Origin) -> source_graph.SourceGraph | None:
  """Returns a graph together with the nodes that its fetches do not need.

  Args:
    origin: A file.

  Returns:
    None if the file is not a GraphDef or a MetaGraph, because other kinds of
    graphs are read as they run.

  Raises:
    InvalidGraphError: there is no graph, or it cannot be used.
  """
  content = graph_files.read(origin)
  if content.kind != 'meta_graph':
    return None
  return _simplified(content.message, origin.text, _label(origin), prune=False)


def _captured(message: meta_graph_pb2.MetaGraphDef, path: str,
              name: str | None) -> source_graph.SourceGraph:
  graph_files.check_nodes(message.graph_def, path)
  captured = source_graph.from_meta_graph(message)
  result = source_graph.SourceGraph(
      name or captured.name, message.graph_def, captured.feeds,
      captured.fetches or pruning.fetches(message.graph_def), captured.devices)
  graph_files.check_ends(result, path)
  return result


def of_meta_graph(message: meta_graph_pb2.MetaGraphDef, path: str,
                  label: str) -> source_graph.SourceGraph:
  """Returns the graph of a MetaGraphDef; function calls are not inlined.

  Args:
    message: A MetaGraphDef with a graph.
    path: Path of the file, for messages.
    label: Name of the graph.

  Raises:
    InvalidGraphError: the graph is not complete.
  """
  graph_files.check_nodes(message.graph_def, path)
  # Before fetches are found, as the last reader of such a node may be gone.
  graph_def = start_order.dropped(message.graph_def)
  result = source_graph.SourceGraph(
      label, graph_def, pruning.feeds(graph_def),
      pruning.declared_fetches(message) or pruning.fetches(graph_def))
  graph_files.check_ends(result, path)
  return result


def _refuse_given(origin: origin_lib.Origin) -> None:
  """Raises an error for a graph that has costs but no TensorFlow ops."""
  data = origin.data if origin.is_file and not origin.is_archive else b''
  is_json = graph_json.is_graph_json(data)
  if is_json:
    graph_json.parse(origin.text, data)  # It may be a plan, or anything else.
  if is_json or cost_graph.is_cost_graph(data):
    raise errors.InvalidGraphError(
        f'{origin.text} is a graph of costs without TensorFlow ops (JSON or '
        'CostGraphDef), which cannot be run, profiled or trained on as a '
        'GraphDef. `gdp place` and `gdp simulate` take it; here give the graph '
        'that it was made from.')


def _in_directory(directory: pathlib.Path,
                  tell: Callable[[str], None]) -> origin_lib.Origin:
  """Returns the file of a SavedModel, or the largest captured graph."""
  for ending in ('pb', 'pbtxt'):
    file = directory / f'saved_model.{ending}'
    if file.is_file():
      return origin_lib.Origin(str(file))
  captured = captured_folders.largest(directory, tell)
  if captured is not None:
    return origin_lib.Origin(str(captured))
  raise errors.InvalidGraphError(
      f'{directory} has neither saved_model.pb nor captured graphs. Give the '
      f'folder of a SavedModel, that of {environment.CAPTURE_DIR}, or a file.')


def _label(origin: origin_lib.Origin) -> str:
  if origin.names_function:
    stem = origin.text.rsplit(':', 1)[1]
  else:
    file = origin.path.resolve()
    if file.name in ('saved_model.pb', 'saved_model.pbtxt'):
      file = file.parent
    stem = file.name if file.is_dir() else file.stem
  return re.sub(r'[^\w.-]+', '_', stem) or 'graph'
