"""The process behind `tracing`: traces one model and returns its graph.

While graph collection is on, TensorFlow keeps the graphs of the functions that
it instantiates, after Grappler. A Keras model's train function is called on a
data set without elements. Its graph is optimized, and then the first op of the
step, which fetches a batch, ends the run. So no step is ever computed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import os
import re
import sys
import tempfile
import time
from typing import Any, Callable, Mapping
import zipfile

import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import stack_room
from gdp_grappler import suggestions
from gdp_grappler import variable_scopes
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import captures
from gdp_grappler.graph.sources import execution
from gdp_grappler.graph.sources import gpu_tracing
from gdp_grappler.graph.sources import opened_files
from gdp_grappler.graph.sources import origin as origin_lib
from gdp_grappler.graph.sources import training_step
from gdp_grappler.graph.sources import without_weights
from gdp_grappler.sharding import scope

_LONGEST = 400  # Limit of the characters of an error from other code.
_METADATA, _MOST_METADATA_BYTES = 'metadata.json', 1 << 16
_BOLD = re.compile(r'\x1b\[\d*m')


def trace(kind: str, path: str, name: str, batch_size: int,
          architecture: str = '',
          tables: Mapping[str, int] | None = None) -> dict[str, Any]:
  """Returns the graph as a custom Grappler pass gets it.

  Args:
    kind: 'keras', 'function' or 'application'.
    path: Path or name of the model.
    name: Name of the graph.
    batch_size: Size of unknown first dimensions.
    architecture: Architecture of the cards that the graph is for; see
      `gpu_tracing`.
    tables: Layers whose tables are split, with the number of parts.

  Returns:
    'graph', a serialized MetaGraphDef; 'notes', lines about assumptions;
    'error', why there is no graph, or None. Without error also 'files', stamps
    of the files that were read (`opened_files`), and 'seconds' of processor
    time.
  """
  watch, begin_s = opened_files.Watch(), time.process_time()
  # Records the devices of weights that the model's code makes under
  # `tf.device`.
  variable_scopes.watch()
  if kind == 'function':
    # Python also adds the directory of the user's own program.
    sys.path.insert(0, os.getcwd())
  notes: list[str] = []
  try:
    with contextlib.ExitStack() as stack:
      if tables:
        stack.enter_context(scope.split_found_tables(tables))
      graph = stack_room.call(_trace, kind, path, name, batch_size,
                              architecture, notes.append)
    data = graph.to_meta_graph().SerializeToString()
    return dict(graph=data, notes=notes, error=None, files=watch.stamps(),
                seconds=time.process_time() - begin_s)
  except errors.InvalidGraphError as error:
    return dict(graph=None, notes=notes, error=str(error))


def _trace(kind: str, path: str, name: str, batch_size: int, architecture: str,
           note: Callable[[str], None]) -> source_graph.SourceGraph:
  load = {
      'keras': load_keras, 'function': call_function,
      'application': load_application
  }[kind]
  model = _loaded(load, path, note)
  step = training_step.empty_step(model, path, batch_size, note)
  without_weights.complete(model)
  graph_def = gpu_tracing.for_architecture(
      architecture, path,
      functools.partial(collect, step, path, 'IteratorGetNext'))
  captures.annotate(graph_def, captures.concrete_functions(step.func))
  return source_graph.SourceGraph(
      name, graph_def, (),
      tuple(n.name for n in graph_def.node if n.op == '_Retval'),
      tuple(context.context().devices()))


def _loaded(load: Callable[[str], Any], path: str, note: Callable[[str],
                                                                  None]) -> Any:
  """Returns a model without values of weights, unless making it needs them."""
  if load is load_keras:
    return load(path)  # The file contains the values.
  try:
    with without_weights.without_weights():
      return load(path)
  except errors.InvalidGraphError as error:
    if error.__cause__ is None:
      raise  # The function does not exist.
  model = load(path)
  note('weights are allocated, as they are used while the model is made')
  return model


def collect(call: Callable[..., Any], path: str, marker: str,
            unplaced: bool = False) -> Any:
  """Returns the largest collected graph that has the marked node.

  Args:
    call: Function that runs the traced function, or fails in its first op.
    path: Path or name of the model, for messages.
    marker: Type of the marked node, or start of its name.
    unplaced: Whether to return the graph before the placer if TensorFlow cannot
      place it.

  Raises:
    InvalidGraphError: no such graph was collected.
  """
  with execution.synchronously():
    failure, graphs = _collected(call, unplaced)
  ours = [
      g for g in graphs
      if any(n.op == marker or n.name.startswith(marker) for n in g.node)
  ]
  if not ours:
    raise errors.InvalidGraphError(
        f'{path} cannot be traced: {one_line(failure)}. Make it run, or '
        f'capture its graph with {environment.CAPTURE_DIR} in your own program.'
    )
  return max(ours, key=lambda g: len(g.node))


def _collected(call: Callable[..., Any],
               unplaced: bool) -> tuple[Exception | None, list[Any]]:
  """Returns the exception of a call, and the graphs that it made.

  Raises:
    InvalidGraphError: the call raised it.
  """
  _run_one_op()  # Makes its own graph now, so later calls make none.
  context.enable_graph_collection()
  try:
    failure = None
    try:
      call()
    except errors.InvalidGraphError:
      raise
    except Exception as error:
      failure = error  # Does not matter if the graph was made before it.
    _run_one_op()
    return failure, [
        f.pre_optimization_graph if unplaced and
        not f.post_optimization_graph.node else f.post_optimization_graph
        for f in context.context().export_run_metadata().function_graphs
    ]
  finally:
    context.disable_graph_collection()


def _run_one_op() -> None:
  """Runs an op, because TensorFlow exports collected graphs after a success.

  When this op runs for the first time, TensorFlow makes a graph for it, which
  would be merged into the graph of a step that failed. So it has to run once
  before the collection.
  """
  tf.identity(tf.constant(0))


def load_keras(path: str) -> Any:
  """Returns a model from a file that Keras wrote.

  Only Keras 3 reads files: tf_keras would run code that a file contains, such
  as the functions of Lambda layers.

  Raises:
    InvalidGraphError: Keras cannot load the file.
  """
  import keras
  with tempfile.TemporaryDirectory() as directory:
    # Keras finds the format by the ending, but the user's file may have
    # another.
    ending = '.h5' if _is_hdf5(path) else '.keras'
    link = os.path.join(directory, f'model{ending}')
    os.symlink(os.path.abspath(path), link)
    try:
      return keras.models.load_model(link)
    except Exception as error:
      why = one_line(error).replace(link, path)
      what_to_do = (
          'Keras 2 wrote it: give a SavedModel, captured graphs or '
          'module:function that returns the model'
          if _version(path).startswith('2.') else
          'Save it again as .keras with this version of Keras, or give '
          'module:function with its custom classes')
      raise errors.InvalidGraphError(
          f'Keras cannot load {path}: {why}. {what_to_do}.') from error


def _version(path: str) -> str:
  """Returns the version of Keras that wrote a file; '' if it is unknown."""
  # Keras reports damaged files.
  with contextlib.suppress(Exception):
    if _is_hdf5(path):
      import h5py
      with h5py.File(path) as file:
        version = file.attrs['keras_version']
        return version.decode() if isinstance(version, bytes) else str(version)
    with zipfile.ZipFile(path) as archive, archive.open(_METADATA) as file:
      found = json.loads(file.read(_MOST_METADATA_BYTES))
      return str(found['keras_version'])
  return ''


def _is_hdf5(path: str) -> bool:
  with open(path, 'rb') as file:
    return file.read(len(origin_lib.HDF5)) == origin_lib.HDF5


def call_function(path: str) -> Any:
  """Returns the model that `module:function` returns.

  Raises:
    InvalidGraphError: there is no such module or function, or it raised an
      error.
  """
  module_name, function_name = path.split(':')
  try:
    target: Any = importlib.import_module(module_name)
    names = dir(target)
  except BaseException as error:
    raise errors.InvalidGraphError(
        f'Cannot import "{module_name}" of {path}: {one_line(error)}. Run in '
        'the directory that holds it, or put this directory on PYTHONPATH.'
    ) from error
  for attribute in function_name.split('.'):
    target = getattr(target, attribute, None)
  if not callable(target):
    raise errors.InvalidGraphError(
        f'{path}: module "{module_name}" ({_origin(module_name)}) has no '
        f'function "{function_name}".'
        f'{suggestions.did_you_mean(function_name, names)} Name one that '
        'returns a Keras model.')
  try:
    return target()
  except BaseException as error:
    raise errors.InvalidGraphError(
        f'{path} raised {one_line(error)}. It is called without arguments and '
        'must return a Keras model.') from error


def load_application(path: str) -> Any:
  """Returns the model of `keras_applications:NAME`, with random weights.

  Raises:
    InvalidGraphError: `keras.applications` has no such model.
  """
  import keras
  name = path.split(':')[1]
  known = sorted(n for n, value in vars(keras.applications).items()
                 if inspect.isfunction(value))
  if name not in known:
    raise errors.InvalidGraphError(
        suggestions.unknown(
            f'model of keras.applications, Keras {keras.__version__},', name,
            known, 'https://keras.io/api/applications', most=3))
  return getattr(keras.applications, name)(weights=None)


def _origin(module_name: str) -> str:
  """Returns a module's file, which may hide the one that the user meant."""
  return getattr(sys.modules[module_name], '__file__', None) or 'built in'


def one_line(error: BaseException | None) -> str:
  """Returns an error as one line: 'ValueError: the message'."""
  if error is None:
    return 'it ran, but TensorFlow kept no graph of it'
  # Python quotes the message of a KeyError, and Keras prints parts of it in
  # bold.
  said = error.args[0] if isinstance(error, KeyError) and error.args else error
  text = ' '.join(_BOLD.sub('', str(said)).split()).rstrip('. ')
  if len(text) > _LONGEST:
    # Keras puts the reason at the end, after the whole config.
    text = f'{text[:_LONGEST // 3]} ... {text[-2 * _LONGEST // 3:]}'
  return f'{type(error).__name__}: {text}' if text else type(error).__name__
