"""Makes a SourceGraph of a model, function or graph in this process.

A compiled Keras model becomes its training step, as Grappler hands it to the
pass. A model that is not compiled becomes its forward pass. Functions and
graphs stay as they are, with their calls inlined. No op runs. But the train
function of a Keras model is traced in this process, so the optimizer has its
variables afterwards, as after the first batch of a `fit`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any, Callable, Mapping, Sequence

import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.eager import cancellation
from tensorflow.python.eager import context

from gdp_grappler import errors
from gdp_grappler import stack_room
from gdp_grappler import variable_scopes
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import source_graph
from gdp_grappler.graph import variable_names
from gdp_grappler.graph.legality import asked
from gdp_grappler.graph.sources import automatic_names
from gdp_grappler.graph.sources import batch_specs
from gdp_grappler.graph.sources import captures
from gdp_grappler.graph.sources import gpu_tracing
from gdp_grappler.graph.sources import input_shapes
from gdp_grappler.graph.sources import pruning
from gdp_grappler.graph.sources import sources
from gdp_grappler.graph.sources import tracing_worker
from gdp_grappler.graph.sources import training_step
from gdp_grappler.graph.sources import without_weights
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import interrupts
from gdp_grappler.plugin.fitting import trainers
from gdp_grappler.sharding import scope

Tell = Callable[[str], None]
_DATA = (
    'Give data=(x, y) as fit takes it: x is what the model is called with, y '
    'what its loss compares with.')
_SIGNATURE = ('Give signature=(tf.TensorSpec(...), ...) with what it is called '
              'with.')
_KINDS = (
    'Give a path or a name, a Keras model or a function that makes one, a '
    'tf.function with its signature, or a tf.Graph.')
# Attributes of a Keras model that a trace changes, and that are restored.
# Setting the first two resets the last two.
_TRACED = ('jit_compile', 'run_eagerly', 'train_tf_function', 'train_function')

# Arguments of the function that Keras runs for each step.
_TAKES_BATCHES = ('iterator',)


def read(
    graph: Any, batch_size: int,
    signature: Sequence[Any] | Mapping[str, Any] | None, tell: Tell,
    architecture: str = '', data: Any = None,
    tables: Mapping[str, int] | None = None
) -> tuple[source_graph.SourceGraph, ...]:
  """Returns the graph of a step and, for a `tf.Graph`, also the whole graph.

  Args:
    graph: A Keras model (Keras 3 or tf_keras), a Python function that makes
      one, a `tf.function`, a concrete function, or a `tf.Graph`.
    batch_size: Size of the dimensions that a Keras model leaves open. For other
      graphs, a line says that this size is assumed.
    signature: Arguments of a `tf.function`, such as tensor specs, in order or
      by name. For a Keras model a batch like `data`, or its inputs by name.
    tell: Called with a line for each assumption.
    architecture: Architecture of the cards for which a training step is traced;
      see `gpu_tracing`.
    data: One batch of a Keras model; see `batch_specs.of`. None means the
      inputs that the model knows.
    tables: Numbers of parts by layer, for the tables of a model that a function
      makes.

  Raises:
    InvalidGraphError: the object is none of these, or cannot be traced.
  """
  _check_signature(signature)
  batch = None
  if data is not None:
    batch = batch_specs.of(data, batch_size, tell)
  if makes_model(graph):
    with automatic_names.kept(), contextlib.ExitStack() as stack:
      if tables:
        stack.enter_context(scope.split_found_tables(tables))
      graph = _made(graph, batch)
  if callable(getattr(graph, 'make_train_function', None)):
    if batch is None and signature is not None:
      given = signature if isinstance(signature, Mapping) else tuple(signature)
      batch = batch_specs.of(given, batch_size, tell)
    return _of_model(graph, batch_size, tell, architecture, batch),
  if batch is not None:
    raise errors.InvalidGraphError(
        f'data is for Keras models; {_name(graph)} is a {type(graph).__name__}.'
        ' Give its signature.')
  found: tuple[source_graph.SourceGraph, ...]
  if hasattr(graph, 'get_concrete_function'):
    name = _name(graph)
    signature = () if signature is None else signature
    found = _of_function(_traced(graph, signature, name), name, signature),
  elif isinstance(graph, tf.Graph):  # The graph of a function has a signature.
    found = _of_graph(graph)
  elif hasattr(graph, 'structured_input_signature'):
    found = _of_function(graph, _name(graph)),
  else:
    raise errors.InvalidGraphError(
        f'{type(graph).__name__} is not a graph. {_KINDS}')
  input_shapes.tell_assumed(found[0], found[0].name, batch_size, tell)
  return found


def _check_signature(signature: Any) -> None:
  """Raises an error for a single tensor, which has no truth value."""
  if signature is not None and not isinstance(signature,
                                              (list, tuple, Mapping)):
    raise errors.InvalidGraphError(
        f'signature is {errors.shown(signature)}. {_SIGNATURE}')


def makes_model(graph: Any) -> bool:
  """Whether an object is a Python function, which `read` calls for a model."""
  return (inspect.isroutine(graph) and
          not hasattr(graph, 'get_concrete_function'))


def _made(make: Callable[[], Any], batch: Any) -> Any:
  """Returns the model that a function makes; the weights have no values."""
  try:
    with without_weights.without_weights():
      model = make()
  except Exception as error:
    # The user's code may raise any error.
    if interrupts.is_of_program(error):
      raise
    raise errors.InvalidGraphError(
        f'{_name(make)} raised {tracing_worker.one_line(error)}. It is called '
        'without arguments, and weights have no values while it makes a model; '
        'give the model itself if it needs them.') from error
  if not callable(getattr(model, 'make_train_function', None)):
    raise errors.InvalidGraphError(
        f'{_name(make)} returned {type(model).__name__}, which is not a Keras '
        'model.')
  if batch is not None and not model.built:
    try:
      without_weights.build(model, batch_specs.features(batch))
    except Exception as error:
      # The user's code may raise any error.
      if interrupts.is_of_program(error):
        raise
      raise errors.InvalidGraphError(
          f'{_name(model)} cannot be called with x of data: '
          f'{tracing_worker.one_line(error)}. {_DATA}') from error
  return model


def _of_model(model: Any, batch_size: int, tell: Tell, architecture: str,
              batch: Any) -> source_graph.SourceGraph:
  name = _name(model)
  if not tf.executing_eagerly():
    raise errors.InvalidGraphError(
        f'Model "{name}" cannot be traced without eager execution. Save it '
        'and give the file.')
  if getattr(model, 'optimizer', None) is None:
    return _forward(model, name, batch_size, tell, batch)
  labels = None
  if batch is None:
    labels = batch_specs.labels_of_fitted(model, batch_size)
    batch = batch_specs.of_fitted(model, batch_size, tell)
    if batch is not None:
      shapes = [tuple(spec.shape) for spec in tf.nest.flatten(batch)]
      tell(f'{name}: batches as it was trained on, {shapes}; data=(x, y) '
           'gives others')
  without_weights.complete(model)
  before = {key: getattr(model, key) for key in _TRACED if hasattr(model, key)}
  try:
    with trainers.unwrapped():
      # An existing train function may be compiled by XLA, or run eagerly.
      model.train_function = None
      step = training_step.empty_step(model, name, batch_size,
                                      lambda note: tell(f'{name}: {note}'),
                                      batch, labels)
      graph_def = gpu_tracing.for_architecture(
          architecture, name, functools.partial(_collected, step, name))
      captures.annotate(graph_def, captures.concrete_functions(step.func))
  except interrupts.Interruption as interruption:
    raise interruption.error from None
  finally:
    for key, value in before.items():
      setattr(model, key, value)
  return source_graph.SourceGraph(name, graph_def, (),
                                  pruning.fetches(graph_def),
                                  tuple(context.context().devices()))


def _forward(model: Any, name: str, batch_size: int, tell: Tell,
             batch: Any) -> source_graph.SourceGraph:
  """Returns the forward pass of a model that is not compiled."""
  tell(f'{name} is not compiled: taking its forward pass')
  if batch is None:
    inputs = training_step.symbolic_inputs(model, name)
    specs = tf.nest.map_structure(
        lambda t: tf.TensorSpec(training_step.known_shape(t.shape, batch_size),
                                t.dtype), inputs)
    training_step.note_unknown(inputs, batch_size,
                               lambda note: tell(f'{name}: {note}'))
  else:
    specs = batch_specs.features(batch)
  forward = tf.function(lambda x: model(x, training=False), jit_compile=False)
  return _of_function(_traced(forward, (specs,), name, _DATA), name)


def _collected(step: functools.partial[Any], name: str,
               unplaced: bool = False) -> graph_pb2.GraphDef:
  """Returns the collected graph of a step; see `tracing_worker.collect`."""
  try:
    return tracing_worker.collect(
        lambda: current_call.run(current_call.LeftAlone(name), stack_room.call,
                                 _instantiate, step), name, 'IteratorGetNext',
        unplaced)
  except errors.InvalidGraphError as error:
    raise errors.InvalidGraphError(f'{error} {_DATA}') from error


@interrupts.beyond_exceptions()  # The caller catches every error of a step.
def _instantiate(step: functools.partial[Any]) -> None:
  """Instantiates a step's graph, and cancels the step before its first op.

  Without a batch the step would fail later. But ops that need no batch, such as
  ops of counters and seeds, might have run before the failure.
  """
  for function in captures.functions(step.func):
    names = tuple(inspect.signature(function.python_function).parameters)
    if names == _TAKES_BATCHES:
      # Creates missing variables, which must not be cancelled.
      function.get_concrete_function(*step.args)
  cancelling = cancellation.CancellationManager()
  cancelling.start_cancel()
  with cancellation.CancellationManagerContext(cancelling):
    step()


def _traced(function: Any, signature: Sequence[Any] | Mapping[str, Any],
            name: str, remedy: str = _SIGNATURE) -> Any:
  """Returns the concrete function of a signature."""
  try:
    if isinstance(signature, Mapping):
      return stack_room.call(function.get_concrete_function, **signature)
    return stack_room.call(function.get_concrete_function, *signature)
  except Exception as error:
    # The user's code may raise any error.
    if interrupts.is_of_program(error):
      raise
    raise errors.InvalidGraphError(
        f'{name} cannot be traced: {tracing_worker.one_line(error)}. {remedy}'
    ) from error


def _of_function(
    concrete: Any, name: str,
    signature: Sequence[Any] | Mapping[str, Any] | None = None
) -> source_graph.SourceGraph:
  graph = concrete.graph
  fetches = [tensor.op.name for tensor in graph.outputs]
  fetches += [op.name for op in graph.control_outputs]
  if not fetches:
    raise errors.InvalidGraphError(
        f'{name} returns nothing and changes nothing. Let it return what it '
        'computes.')
  graph_def = graph_pb2.GraphDef()
  graph_def.CopyFrom(graph.as_graph_def())
  if signature is not None and not isinstance(signature, Mapping):
    input_shapes.take(graph_def, concrete, signature)
  _restore_variables(graph_def, concrete)
  return asked.of_file(
      pruning.simplify(
          source_graph.SourceGraph(name, graph_def, pruning.feeds(graph_def),
                                   tuple(dict.fromkeys(fetches))), name,
          prune=True))


def _restore_variables(graph_def: graph_pb2.GraphDef, concrete: Any) -> None:
  """Replaces the placeholders of captured variables by VarHandleOps."""
  variables = {id(v.handle): v for v in concrete.graph.variables}
  nodes = {node.name: node for node in graph_def.node}
  for outer, inner in concrete.graph.captures:
    variable = variables.get(id(outer))
    node = nodes.get(inner.op.name)
    if variable is None or node is None or node.op not in op_kinds.PLACEHOLDERS:
      continue
    node.op = 'VarHandleOp'
    node.attr.clear()
    node.attr['dtype'].type = variable.dtype.as_datatype_enum
    node.attr['shape'].shape.CopyFrom(variable.shape.as_proto())
    # Variables with the same shared name would be one resource.
    node.attr['shared_name'].s = node.name.encode()
    node.device = variable_scopes.device(variable)
    variable_names.mark(node, captures.name_of(variable))


def _of_graph(graph: tf.Graph) -> tuple[source_graph.SourceGraph, ...]:
  name = 'graph'
  with graph.as_default():  # The export takes the default graph.
    meta_graph = tf.compat.v1.train.export_meta_graph()
  whole = sources.of_meta_graph(meta_graph, name, name)
  return (asked.of_file(pruning.simplify(whole, name, prune=True)),
          asked.of_file(pruning.simplify(whole, name, prune=False)))


def _name(graph: Any) -> str:
  for attribute in ('name', '__name__'):
    name = getattr(graph, attribute, None)
    if isinstance(name, str) and name:
      return name
  function = getattr(graph, 'python_function', None)
  return getattr(function, '__name__', 'graph')
