"""Tests of `place` on what a program has in memory."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.api import models
from gdp_grappler.plugin import switch
from helpers import fresh

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
  # Counters and seeds wait for no batch.
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
  placed = _placed(step, signature=(tf.TensorSpec((None, 8)),), batch_size=64)
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
  """Another thread may train by it."""
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


@pytest.mark.e2e
def test_variables_stay_where_fit_has_put_them():
  """They went back while a model was placed, and `fit` went on without them."""
  done = fresh.run_code("""
import json

import keras
import numpy as np
import tensorflow as tf

import gdp_grappler

cpu, = tf.config.list_physical_devices('CPU')
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
tf.config.optimizer.set_experimental_options(
    {'gdp_placement': {'plan': {'moved': 'CPU:1'}, 'min_ops': 1}})
model = keras.Sequential([
    keras.Input((4,)), keras.layers.Dense(4, name='moved'),
    keras.layers.Dense(2)])
model.compile('adam', 'mse')
seen = []


class Places(keras.callbacks.Callback):

  def on_epoch_end(self, epoch, logs=None):
    function = model.train_function
    gdp_grappler.place(model, '2xP100', placer='random', verbose=False)
    seen.append((model.layers[0].kernel.value.device[-5:],
                 model.train_function is function, function.is_placed))


model.fit(np.zeros((8, 4)), np.zeros((8, 2)), epochs=2, verbose=0,
          callbacks=[Places()])
print(json.dumps(seen))
""")
  assert done.code == 0, done.stderr
  assert done.results == [['CPU:1', True, True]] * 2


def test_a_step_for_gpus_is_what_a_gpu_would_run_and_leaves_no_trace():
  """Keras' SiLU became a kernel that only CPUs have."""
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


@pytest.mark.e2e
def test_a_model_is_placed_although_the_option_was_on_before():
  """Its optimizer's variables were left without values, and `fit` failed."""
  done = fresh.run_code("""
import keras
import numpy as np
import tensorflow as tf

import gdp_grappler

tf.config.optimizer.set_experimental_options({'gdp_placement': True})
tf.function(lambda x: x + 1)(1)
for value in (True, False):
  tf.config.optimizer.set_experimental_options({'gdp_placement': value})
  model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
  model.compile('adam', 'mse')
  plan = gdp_grappler.place(model, '2xP100', placer='random')
  assert 'IteratorGetNext' in plan.graph.op_types
  model.fit(np.zeros((8, 4)), np.zeros((8, 2)), verbose=0)
""")
  assert done.code == 0, done.stderr
