import pytest
import tensorflow as tf

from gdp_grappler.graph.legality import asked
from gdp_grappler.graph.legality import colocation
from helpers import graph_defs

tf1 = tf.compat.v1


def _frames(make):
  tf1.disable_control_flow_v2()
  try:
    return make()
  finally:
    tf1.enable_control_flow_v2()


def test_references_read_as_values_hold_nothing_together():
  # A Saver reads all variables; it was found to tie them to each other.
  def make():
    for name in 'ab':
      tf1.Variable([1., 2.], use_resource=False, name=name)
    tf1.train.Saver()

  groups = graph_defs.groups(graph_defs.read(make))
  assert groups['a'] == groups['a/Assign'] == groups['save/Assign']
  assert groups['b'] == groups['b/Assign'] == groups['save/Assign_1']
  assert groups['a/read'] == groups['a']  # By its `_class`.
  assert len({groups['a'], groups['b'], groups['save/SaveV2']}) == 3


def test_resources_and_references_hold_together():

  def make():
    for name, kind in (('r', True), ('f', False)):
      v = tf1.Variable([1.0, 2.0], use_resource=kind, name=name)
      v.assign_add([1.0, 1.0], name=f'{name}_add')
    tf.sin(tf.constant(1.0), name='sin')

  groups = graph_defs.groups(graph_defs.read(make))
  assert groups['r'] == groups['r/Read/ReadVariableOp'] == groups['r/Assign']
  assert groups['f'] == groups['f/Assign'] == groups['f_add']
  assert len({groups['r'], groups['f'], groups['sin']}) == 3


def test_tensor_lists_hold_together():

  def make():
    raw = tf.raw_ops
    a = raw.TensorListReserve(element_shape=[2], num_elements=3,
                              element_dtype=tf.float32, name='a')
    b = raw.TensorListSetItem(input_handle=a, index=0, item=[1., 2.], name='b')
    raw.TensorListStack(input_handle=b, element_shape=[2],
                        element_dtype=tf.float32, name='c')

  groups = graph_defs.groups(graph_defs.read(make))
  assert groups['a'] == groups['b'] == groups['c']
  assert groups['b/item'] != groups['b']


def _cudnn_layers(between):
  """Adds two layers of cuDNN, and their gradients, which read `between`."""
  state = tf.zeros([1, 2, 4])
  attributes = {'rnn_mode': 'gru', 'time_major': True}
  x, layers = tf.zeros([3, 2, 4]), []
  for i in range(2):
    layer = tf.raw_ops.CudnnRNNV3(input=x, input_h=state, input_c=0.,
                                  params=tf.zeros([120]),
                                  sequence_lengths=[3, 3], is_training=True,
                                  name=f'layer{i}', **attributes)
    layers.append((x, layer))
    x = layer.output
  for i, (inputs, layer) in enumerate(layers):
    tf.raw_ops.CudnnRNNBackpropV3(
        input=inputs, input_h=state, input_c=0., params=tf.zeros([120]),
        sequence_lengths=[3, 3], output=layer.output, output_h=layer.output_h,
        output_c=layer.output_c, output_backprop=x, output_h_backprop=state,
        output_c_backprop=0., reserve_space=between(layer.reserve_space),
        host_reserved=layer.host_reserved, name=f'gradient{i}', **attributes)


@pytest.mark.parametrize('between', [
    lambda space: space,
    lambda space: tf.identity(tf.stop_gradient(space)),
    lambda space: tf1.cond(tf1.placeholder(tf.bool, []), lambda: space, lambda:
                           tf.zeros([9])),
], ids=['direct', 'identity', 'condition'])
def test_layers_of_cudnn_hold_together_with_their_gradients_only(between):
  """A gradient behind an Identity moved without its layer."""
  graph = graph_defs.read(lambda: _frames(lambda: _cudnn_layers(between)))
  groups, pins = graph_defs.groups(graph), graph_defs.pins(graph)
  for i in range(2):
    assert groups[f'layer{i}'] == groups[f'gradient{i}']
    assert pins[f'layer{i}'] == pins[f'gradient{i}'] == ''
  assert groups['layer0'] != groups['layer1']


def test_gradients_of_cudnn_without_their_layer_stay():
  """The gradient of a layer of another function moved without the layer."""
  graph = graph_defs.read(
      lambda: _cudnn_layers(lambda _: tf1.placeholder(tf.float32, [None])))
  pins = graph_defs.pins(graph)
  for i in range(2):
    assert pins[f'gradient{i}'] == '/device:GPU:0'


def test_a_device_asked_for_a_gradient_of_cudnn_counts():
  """A gradient that is with its layer lost the device of `tf.device`."""
  definition = graph_defs.built(lambda: _cudnn_layers(lambda space: space))
  asked.mark(definition, lambda node: 'GPU:1'
             if node.name == 'gradient0' else '')
  graph = graph_defs.graph_def_io.read(graph_defs.source(definition))
  assert graph_defs.pins(graph)['gradient0'] == 'GPU:1'


def test_class_constraints_with_and_without_the_op_they_name():

  def op(name, *labels):
    return graph_defs.node(name, 'NoOp', _class=labels)

  definition = graph_defs.graph_def(op('a'), op('b', b'loc:@a'),
                                    op('c', b'loc:@gone'),
                                    op('d', b'loc:@gone'),
                                    op('e', b'loc:@d', b'loc:@a'),
                                    op('f', b'other'), op('g'))
  graph = graph_defs.graph_def_io.read(graph_defs.source(definition))
  groups = graph_defs.groups(graph)
  assert len({groups[n] for n in 'abcde'}) == 1
  assert len({groups['a'], groups['f'], groups['g']}) == 3


def test_shared_names_hold_together():

  def queue(name, shared):
    return graph_defs.node(name, 'FIFOQueueV2', shared_name=shared,
                           component_types={'list': {'type': [1]}})

  definition = graph_defs.graph_def(queue('a', b'q'), queue('b', b'q'),
                                    queue('c', b''), queue('d', b''))
  graph = graph_defs.graph_def_io.read(graph_defs.source(definition))
  groups = graph_defs.groups(graph)
  assert groups['a'] == groups['b']
  assert len({groups['a'], groups['c'], groups['d']}) == 3


def test_a_loop_is_one_group_and_what_surrounds_it_is_not():

  def make():
    x = tf1.placeholder(tf.float32, [2, 2], 'x')
    before = tf.sin(x, name='before')
    out = tf1.while_loop(lambda i, _: i < 3, lambda i, h:
                         (i + 1, tf.matmul(h, before)), [0, before],
                         name='loop')[1]
    tf.cos(out, name='after')

  graph = graph_defs.read(lambda: _frames(make))
  groups = graph_defs.groups(graph)
  inside = {
      g for name, g in groups.items()
      if name.startswith('loop/') and 'Const' not in name
  }
  assert len(inside) == 1
  assert not inside & {groups['before'], groups['after'], groups['x']}


def test_nested_loops_are_one_group_and_loops_in_a_row_are_not():

  def loop(name, turns, x, body=tf.sin):
    return tf1.while_loop(lambda i, _: i < turns, lambda i, h: (i + 1, body(h)),
                          [0, x], name=name)[1]

  def make():
    x = tf1.placeholder(tf.float32, [2], 'x')
    y = loop('outer', 2, x, lambda h: loop('inner', 3, h) + 1.0)
    loop('next', 2, y)

  groups = graph_defs.groups(graph_defs.read(lambda: _frames(make)))

  def of(prefix):
    return {
        g for name, g in groups.items()
        if name.startswith(prefix) and name.split('/')[-1].startswith((
            'Merge', 'Sin', 'Exit', 'Enter', 'Switch'))
    }

  assert of('outer/') == of('outer/inner/') and len(of('outer/')) == 1
  assert len(of('next/')) == 1 and of('next/') != of('outer/')


def test_a_long_chain_of_ops_in_a_frame_needs_no_recursion():
  n = 5000
  nodes = [graph_defs.node('e', 'Enter', frame_name=b'f')]
  nodes += [graph_defs.node(f'n{i}', 'Identity') for i in range(n)]
  edges = [(i, 0, i + 1) for i in range(n)]
  assert colocation.frames(nodes, edges) == {'f': list(range(n + 1))}


def _adam(v, m, gradient):
  m.assign(m + (gradient - m) * 0.1)
  v.assign(v - 0.1 * m / (tf.sqrt(m) + 1e-3))


def test_slots_go_with_their_variable_and_others_do_not():

  def make():
    variables = {
        name: tf1.Variable(tf.ones(shape), use_resource=True, name=name)
        for name, shape in (('v', [4, 3]), ('m', [4, 3]), ('other', [4, 3]),
                            ('rate', []))
    }
    x = tf1.placeholder(tf.float32, [4, 4], 'x')
    gradient = tf.matmul(x, variables['other'].read_value())
    _adam(variables['v'], variables['m'],
          gradient * variables['rate'].read_value())

  free = graph_defs.groups(graph_defs.read(make))
  assert free['v'] == free['m']
  assert len({free['v'], free['other'], free['rate']}) == 3
  live = graph_defs.groups(graph_defs.read(make, live=True))
  assert live['v'] != live['m']


def test_slots_that_are_apart_are_free_of_their_variable():
  """As Keras makes them for a model that was made under `tf.device`.

  Once neither could move, since TensorFlow had spread their group.
  """

  def make():
    v = tf1.Variable(tf.ones([4, 3]), use_resource=True, name='v')
    with tf1.device('/CPU:1'):
      m = tf1.Variable(tf.ones([4, 3]), use_resource=True, name='m')
    x = tf1.placeholder(tf.float32, [4, 3], 'x')
    _adam(v, m, x)

  def joined(**freedom):
    groups = graph_defs.groups(graph_defs.read(make, **freedom))
    return groups['v'] == groups['m']

  assert joined()
  assert not joined(live=True, relocatable=True)
