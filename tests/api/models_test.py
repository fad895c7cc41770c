"""Tests of `place` on what a program has in memory."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.api import models
from gdp_grappler.plugin import switch
from helpers import alarms

tf1 = tf.compat.v1


def _model(**compiled):
  model = keras.Sequential([
      keras.Input((8,)),
      keras.layers.Dense(16, 'relu', name='left'),
      keras.layers.Dense(4, name='right')
  ], name='small')
  if compiled:
    model.compile(**compiled)
  return model


def _placed(graph, **arguments):
  return gdp_grappler.place(graph, '2xP100', placer='random', **arguments)


def test_a_compiled_model_is_its_training_step():
  placed = _placed(_model(optimizer='adam', loss='mse'))
  types = placed.graph.op_types
  assert placed.graph.name == 'small'
  assert 'IteratorGetNext' in types
  assert any('Assign' in t or 'ResourceApply' in t for t in types)
  # Weights, biases, and two slots of each.
  weights = 4 * (8 * 16 + 16 + 16 * 4 + 4)
  assert placed.graph.param_bytes.sum() >= 3 * weights


def test_variables_of_a_step_have_their_paths():
  model = _model(optimizer='adam', loss='mse')
  graph = _placed(model).graph
  named = set(filter(None, graph.variables))
  assert named >= {v.path for v in model.trainable_variables}
  assert named <= {
      v.path for v in (*model.variables, *model.optimizer.variables,
                       *model.metrics_variables)
  }
  shapes = {v.path: v.shape for v in model.variables}
  for op in np.flatnonzero(graph.param_bytes):
    path = graph.variables[op]
    if path in shapes:
      assert graph.param_bytes[op] == 4 * np.prod(shapes[path])


def test_variables_of_a_function_have_their_paths():
  model = _model()
  function = tf.function(lambda x: model(x))
  graph = _placed(function, signature=[tf.TensorSpec((2, 8))]).graph
  assert {
      graph.variables[op] or graph.names[op]
      for op in np.flatnonzero(graph.param_bytes)
  } == {v.path for v in model.variables}


def test_a_model_can_be_trained_afterwards_as_before():
  # Ops of counters and seeds need no batch, so they could run in a trace.
  losses = []
  for looked_at in (False, True):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([
        keras.Input((8,)),
        keras.layers.Dropout(.5),
        keras.layers.Dense(4),
    ])
    model.compile('adam', 'mse', metrics=['mae'])
    x, y = np.ones((32, 8)), np.ones((32, 4))
    losses.append([])
    for _ in range(2):
      for _ in range(3 * looked_at):
        function = model.train_function
        _placed(model)
        assert model.train_function is function
      losses[-1] += model.fit(x, y, verbose=0, shuffle=False).history['loss']
  assert losses[0] == losses[1]


def test_a_model_that_is_not_compiled_is_its_forward_pass():
  told = []
  placed = _placed(_model(), batch_size=5, tell=told.append)
  assert any('not compiled' in line for line in told)
  assert 'small: batches of 5' in told
  assert placed.graph.op_types.count('MatMul') == 2
  assert placed.graph.param_bytes.sum() == 4 * (8 * 16 + 16 + 16 * 4 + 4)
  assert placed.fifo.valid


def test_names_are_those_that_a_plan_in_the_option_goes_by():
  placed = _placed(_model(optimizer='sgd', loss='mse'))
  assert any('left' in name and 'MatMul' in placed.graph.op_types[i]
             for i, name in enumerate(placed.graph.names))


def test_a_function_with_a_signature():
  weight = tf.Variable(tf.ones([8, 8]), name='weight')

  @tf.function
  def step(x):
    y = tf.matmul(x, weight)
    weight.assign_sub(tf.reduce_mean(y) * tf.ones([8, 8]))
    return y

  before = weight.numpy()
  told = []
  placed = _placed(step, signature=(tf.TensorSpec((None, 8)),), batch_size=64,
                   tell=told.append)
  assert 'step: unknown dimensions of inputs taken as 64; batch_size sets ' in (
      told[0])
  assert (weight.numpy() == before).all()
  assert placed.graph.name == 'step'
  assert placed.graph.param_bytes.sum() == 8 * 8 * 4
  assert 'AssignSubVariableOp' in placed.graph.op_types
  variable = placed.graph.op_types.index('VarHandleOp')
  update = placed.graph.op_types.index('AssignSubVariableOp')
  assert placed.placement.devices[variable] == placed.placement.devices[update]
  concrete = step.get_concrete_function(tf.TensorSpec((64, 8)))
  assert _placed(concrete).graph.num_ops == placed.graph.num_ops


def test_a_function_that_calls_another_is_one_graph():

  @tf.function
  def inner(x):
    return tf.sin(x) @ x

  @tf.function(input_signature=[tf.TensorSpec((8, 8))])
  def outer(x):
    return inner(x) + inner(tf.cos(x))

  placed = _placed(outer)
  assert placed.graph.op_types.count('MatMul') == 2
  assert not any('Call' in t for t in placed.graph.op_types)


def test_a_v1_graph_with_its_initializers(tmp_path):
  with tf.Graph().as_default() as graph:
    x = tf1.placeholder(tf.float32, [None, 8])
    w = tf1.get_variable('w', [8, 8], use_resource=True)
    loss = tf.reduce_sum(tf.nn.relu(x @ w))
    tf1.train.GradientDescentOptimizer(.1).minimize(loss, name='train')
    tf1.global_variables_initializer()
  placed = _placed(graph, whole_graph=True)
  assert 'w/Assign' not in placed.devices
  placed.save(tmp_path / 'placed.pb')
  written = tf1.GraphDef.FromString((tmp_path / 'placed.pb').read_bytes())
  devices = {node.name: node.device for node in written.node}
  assert devices['w/Assign'] == devices['w']


def test_the_graph_of_a_function_is_a_graph():
  """Once this graph was taken for a function: an AttributeError."""
  function = tf.function(lambda x: x @ x)
  traced = function.get_concrete_function(tf.TensorSpec([8, 8]))
  assert 'MatMul' in _placed(traced.graph).graph.op_types


@pytest.mark.parametrize('graph, said', [
    (tf.function(lambda x: x), 'Give signature='),
    (tf.function(lambda: None), 'returns nothing'),
    (tf.Graph(), 'no nodes'),
])
def test_what_cannot_be_traced_is_refused(graph, said):
  with pytest.raises(errors.InvalidGraphError, match=said):
    _placed(graph)


def test_a_model_without_inputs_is_refused():
  model = keras.Sequential([keras.layers.Dense(3)])
  with pytest.raises(errors.InvalidGraphError, match='does not know its'):
    _placed(model)
  model.compile('sgd', 'mse')
  with pytest.raises(errors.InvalidGraphError, match='does not know its'):
    _placed(model)


def test_the_option_stays_as_it_is_while_a_model_is_traced():
  """Another thread may train with the option on."""
  seen = []
  model = _model(optimizer='sgd', loss='mse')
  make = model.make_train_function

  def spy(*args, **kwargs):
    seen.append(switch.value(models.context.context()))
    return make(*args, **kwargs)

  model.make_train_function = spy
  tf.config.optimizer.set_experimental_options(
      {'gdp_placement': {'mode': 'report'}})
  before = switch.value(models.context.context())
  try:
    models.read(model, 4, None, lambda line: None)
    seen.append(switch.value(models.context.context()))
  finally:
    tf.config.optimizer.set_experimental_options({'gdp_placement': False})
  assert len(seen) == 2 and all(value is before for value in seen)


def test_a_step_for_gpus_is_what_a_gpu_would_run_and_leaves_no_trace():
  """Once Keras' SiLU became a kernel that only CPUs have."""
  model = keras.Sequential([
      keras.Input((6,), batch_size=2, dtype='int32'),
      keras.layers.Embedding(10, 8),
      keras.layers.LSTM(8),
      keras.layers.Dense(8, 'silu')
  ])
  model.compile('sgd', 'mse')
  before = tf.config.optimizer.get_experimental_options()
  on_gpus = _placed(model).graph.op_types
  assert {'CudnnRNNV3', 'Sigmoid', 'Mul'} <= set(on_gpus)
  assert not {'_MklSwish', '_FusedMatMul'} & set(on_gpus)
  assert tf.config.optimizer.get_experimental_options() == before
  on_cpus = gdp_grappler.place(model, '2xcpu-eth10', placer='random')
  assert 'CudnnRNNV3' not in on_cpus.graph.op_types
  model.fit(np.zeros((2, 6), int), np.zeros((2, 8)), verbose=0)


def test_a_graph_with_kernels_of_cpus_is_restored_and_so_is_the_whole():
  with tf.Graph().as_default() as graph:
    variable = tf1.get_variable('v', (4, 4), use_resource=True)
    tf.identity(variable, name='read')
    definition = graph.as_graph_def()
    node = definition.node.add(name='silu', op='_MklSwish', input=['read'])
    node.attr['T'].type = tf.float32.as_datatype_enum
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(definition, name='')
  told = []
  placed = _placed(graph, whole_graph=True, tell=told.append)
  assert 'Sigmoid' in placed.graph.op_types
  assert '_MklSwish' not in placed.graph.op_types
  assert sum('_MklSwish' in line for line in told) == 1


class _Subclassed(keras.Model):
  """A model that does not know its inputs."""

  def __init__(self):
    super().__init__(name='own')
    self.hidden = keras.layers.Dense(8, name='hidden')
    self.top = keras.layers.Dense(2, name='top')

  def call(self, inputs):
    return self.top(self.hidden(inputs['x']))


def _compiled(model):
  model.compile('adam', 'mse')
  return model


@pytest.mark.parametrize('how', ['data', 'specs', 'signature', 'dataset'])
def test_a_model_that_does_not_know_its_inputs_takes_a_batch(how):
  x, y = {'x': np.zeros((4, 3), np.float32)}, np.zeros((4, 2), np.float32)
  specs = {'x': tf.TensorSpec((4, 3))}, tf.TensorSpec((4, 2))
  given = {
      'data': {'data': (x, y)}, 'specs': {'data': specs},
      'signature': {'signature': specs},
      'dataset': {'data': tf.data.Dataset.from_tensors((x, y))}
  }[how]
  graph = _placed(_compiled(_Subclassed()), **given).graph
  assert 'IteratorGetNext' in graph.op_types
  # Weights, biases, and two slots of each.
  assert graph.param_bytes.sum() >= 3 * 4 * (3 * 8 + 8 + 8 * 2 + 2)


def _made_of_own_class():
  return _compiled(_Subclassed())


# Keras warns that it could not build the model.
@pytest.mark.filterwarnings('ignore::UserWarning')
@pytest.mark.parametrize('graph', [
    _made_of_own_class,
    pytest.param(None, id='compiled'),
    pytest.param(_Subclassed, id='not compiled'),
])
def test_a_batch_that_the_model_does_not_take_is_an_error_of_ours(graph):
  """Once Keras' KeyError ended `place`, if a function made the model."""
  if graph is None:
    graph = _made_of_own_class()
  elif graph is _Subclassed:
    graph = graph()
  data = {'z': np.zeros((4, 3), np.float32)}, np.zeros((4, 2), np.float32)
  with pytest.raises(errors.InvalidGraphError) as caught:
    _placed(graph, data=data)
  said = str(caught.value)
  assert said.startswith('own cannot be ') and 'Give data=(x, y)' in said
  assert 'Exception encountered when calling' in said
  assert '\x1b' not in said


def test_a_batch_of_a_model_that_is_not_compiled_is_its_input():
  graph = _placed(_Subclassed(), data={'x': tf.TensorSpec((4, 3))}).graph
  assert 'MatMul' in graph.op_types and 'AssignVariableOp' not in graph.op_types


def test_a_function_makes_a_model_without_weights():
  made = []

  def make():
    made.append(_compiled(_Subclassed()))
    return made[-1]

  specs = {'x': tf.TensorSpec((4, 3))}, tf.TensorSpec((4, 2))
  placed = _placed(make, data=specs)
  assert placed.graph.name == 'own'
  assert placed.graph.param_bytes.sum() >= 3 * 4 * (3 * 8 + 8 + 8 * 2 + 2)
  assert not made[0].hidden.kernel.numpy().size


def _words():
  return _compiled(
      keras.Sequential([
          keras.Input((4,), dtype='int32', batch_size=2),
          keras.layers.Embedding(100_000, 8),
          keras.layers.Flatten(),
          keras.layers.Dense(2)
      ]))


@pytest.mark.parametrize('split_tables', ['auto', {'embedding*': 4}])
def test_a_function_that_makes_a_model_makes_its_table_in_parts(split_tables):
  """Once the table, too large for each device, stayed whole."""
  told = []
  placed = gdp_grappler.place(_words, '2xP100', placer='m_etf',
                              split_tables=split_tables,
                              max_memory={'GPU': '12MB'}, tell=told.append)
  assert len([line for line in told if 'parts' in line]) == 1
  parts = {v for v in placed.graph.variables if 'part_3' in v}
  assert len(parts) == 3  # With Adam's slots.


def test_a_function_is_looked_at_without_counting_its_layers():
  names = [layer.name for layer in _words().layers]
  placed = _placed(_words)
  again = [layer.name for layer in _words().layers]
  assert names != again
  assert all(
      any(name in op for op in placed.graph.variables)
      for name in (again[0], again[2]))


def test_tables_of_a_model_that_is_there_are_not_split():
  with pytest.raises(errors.GdpError, match='give a function that makes it'):
    _placed(_words(), split_tables={'embedding*': 4})


@pytest.mark.parametrize('graph, given, said', [
    (lambda: 1, {}, 'returned int'),
    (lambda: tf.Variable(tf.ones, shape=[]) + 1, {}, 'raised '),
    (tf.function(lambda x: x), {'data': np.zeros(3)}, 'data is for Keras'),
    ('rnnlm-2@tiny', {'data': np.zeros(3)}, 'takes none'),
])
def test_what_takes_no_batch_says_so(graph, given, said):
  with pytest.raises(errors.GdpError, match=said):
    _placed(graph, **given)


def test_a_signature_by_name_is_not_taken_for_its_names():
  function = tf.function(lambda x, scale: tf.matmul(x, x) * scale)
  spec = tf.TensorSpec((4, 4), tf.float32)
  by_name = _placed(
      function, signature={'scale': tf.TensorSpec((), tf.float32),
                           'x': spec}).graph
  in_order = _placed(function, signature=(spec, tf.TensorSpec(
      (), tf.float32))).graph
  assert sorted(by_name.op_types) == sorted(in_order.op_types)
  assert 'MatMul' in by_name.op_types


def test_inputs_of_a_model_by_name():
  inputs = {name: keras.Input((3,), name=name) for name in ('a', 'b')}
  model = keras.Model(inputs, inputs['a'] @ keras.ops.transpose(inputs['b']))
  signature = {name: tf.TensorSpec((5, 3), tf.float32) for name in inputs}
  assert 'MatMul' in _placed(model, signature=signature).graph.op_types


@pytest.mark.parametrize('of_ring, arguments', [
    (lambda ring: ring, {}),
    (tf.function, {'signature': [tf.TensorSpec([])]}),
    (lambda ring: lambda: keras.Sequential([keras.layers.Lambda(ring)]),
     {'data': (np.ones((2, 8)), np.ones(2))}),
    (lambda ring: _model(optimizer=keras.optimizers.SGD(ring), loss='mse'), {}),
], ids=['makes', 'traces', 'builds', 'trains'])  # yapf: disable
def test_a_timeout_of_the_program_is_no_error_of_a_model(of_ring, arguments):
  """Once the timeout became an error that told users to change the model."""
  with alarms.alarm() as ring, pytest.raises(alarms.TooLongError):
    _placed(of_ring(ring), **arguments)
