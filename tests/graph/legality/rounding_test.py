"""On which kind of device ops are at home, and which are at home anywhere."""

import ml_dtypes  # Comes with TensorFlow.
import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.legality import rounding
from helpers import graph_defs

_CPU, _GPU = graph_defs.CPU(0), graph_defs.GPU(0)
_INT32 = {'type': 3}
_INT64 = {'type': 9}
_VARIANT = {'type': 21}
_FREE, _ON_CPU, _ON_GPU = [True, True], [True, False], [False, True]


def _node(op, inputs=(), device='', **attributes):
  return graph_defs.node('op', op, inputs, device, **attributes)


@pytest.mark.parametrize('node, why', [
    (_node('MatMul', T=graph_defs.FLOAT), 'it multiplies matrices'),
    (_node('MatMul', T=_INT32), ''),
    (_node('AddV2', T=graph_defs.FLOAT), 'it computes each element'),
    (_node('AddV2', T=_INT32), ''),
    (_node('AddN', T=_VARIANT, N={'i': 2}), 'it computes each element'),
    (_node('Reshape', T=graph_defs.FLOAT, Tshape=_INT32), ''),
    (_node('ZerosLike', T=_VARIANT), ''),
    (_node('ResourceGather', dtype=graph_defs.FLOAT,
           Tindices=_INT32), 'it looks elements up'),
    (_node('GatherV2', Tparams=_INT32, Tindices=_INT32,
           Taxis=_INT32), 'it looks elements up'),
    (_node('ScatterNd', T=_INT64, Tindices=_INT32), 'it adds up'),
    (_node('ScatterNd', T=_INT32, Tindices=_INT32), ''),
    (_node('FloorDiv', T=_INT64), 'it computes each element'),
    (_node('FloorDiv', T=_INT32), ''),
    (_node('TopKV2', T=_INT32), 'it chooses by size'),
    (_node('ResourceApplyAdam', T=graph_defs.FLOAT), 'it updates a variable'),
    (_node('ResizeNearestNeighbor', T=_INT32), 'it resamples'),
    (_node('StatelessRandomUniformV2', dtype=graph_defs.FLOAT,
           Tshape=_INT32), ''),
    (_node('StatelessRandomNormalV2', dtype=graph_defs.FLOAT,
           Tshape=_INT32), 'it computes a distribution'),
    (_node('Cast', SrcT=graph_defs.FLOAT, DstT=_INT32), 'it rounds to fewer'),
    (_node('Cast', SrcT={'type': 10}, DstT=graph_defs.FLOAT), ''),
    (_node('_FusedConv2D', T=graph_defs.FLOAT), 'it is a convolution'),
    (_node('NoOp'), ''),
])
def test_a_type_of_op_and_its_types_say_what_rounds(node, why):
  """Of int32, ScatterNd and FloorDiv work on the host, wherever they are."""
  found = rounding.why_it_rounds(node)
  assert found.startswith(why) and bool(found) == bool(why)


def test_an_op_that_nobody_has_looked_at_rounds():
  """RiscAdd is in the registry, for CPUs only, and in no set."""
  assert 'not examined' in rounding.why_it_rounds(
      _node('RiscAdd', T=graph_defs.FLOAT))


_CASTS = [
    tf.bool, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32,
    tf.int64, tf.uint64, tf.float16, tf.bfloat16, tf.float32, tf.float64
]


@pytest.mark.parametrize('source', _CASTS)
def test_a_cast_is_exact_only_if_every_value_comes_back(source):
  values = _extremes(source)
  for target in _CASTS:
    if not rounding.is_exact_cast(source.as_datatype_enum,
                                  target.as_datatype_enum):
      continue
    # Of whole numbers bits are kept or left out, and nothing rounded.
    if source.is_floating or target.is_floating:
      there = tf.cast(tf.cast(values, target), source)
      assert (there.numpy() == values).all(), target


def _extremes(dtype):
  """What rounding would change first."""
  if dtype == tf.bool:
    return np.array([False, True])
  if not dtype.is_floating:
    info = np.iinfo(dtype.as_numpy_dtype)
    return np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max],
                    dtype.as_numpy_dtype)
  info = ml_dtypes.finfo(dtype.as_numpy_dtype)
  return np.array([info.max, info.min, info.tiny, info.eps, 1 + info.eps],
                  dtype.as_numpy_dtype)


@pytest.mark.parametrize('source, target, exact', [
    (tf.bool, tf.float16, True),
    (tf.uint8, tf.bfloat16, True),
    (tf.int16, tf.bfloat16, False),
    (tf.int32, tf.float32, False),
    (tf.int32, tf.float64, True),
    (tf.float16, tf.float32, True),
    (tf.float16, tf.bfloat16, False),
    (tf.float32, tf.bfloat16, False),
    (tf.float32, tf.bool, False),
    (tf.float32, tf.int64, False),
    (tf.int64, tf.int8, True),
])
def test_casts(source, target, exact):
  assert rounding.is_exact_cast(source.as_datatype_enum,
                                target.as_datatype_enum) == exact


def _same_numbers(*nodes, devices=(_CPU, _GPU), live=True):
  graph = graph_def_io.read(
      graph_defs.source(graph_defs.graph_def(*nodes), devices=devices),
      live=live)
  return dict(zip(graph.names, graph.same_numbers.tolist()))


def _nodes(device='', **attributes):
  """Bits, a product of them, and its shape."""
  shape = graph_defs.node('shape', 'Const', device=device, dtype=_INT32)
  shape.attr['value'].tensor.dtype = 3
  shape.attr['value'].tensor.tensor_shape.dim.add().size = 2
  shape.attr['value'].tensor.int_val.extend([8, 8])
  return (shape,
          graph_defs.node('bits', 'StatelessRandomUniform', ['shape', 'shape'],
                          device, T=_INT32, Tseed=_INT32,
                          dtype=graph_defs.FLOAT),
          graph_defs.node('product', 'MatMul', ['bits', 'bits'], device,
                          T=graph_defs.FLOAT, transpose_a={'b': False},
                          transpose_b={'b': False}, **attributes),
          graph_defs.node('size', 'Shape', ['product'], device,
                          T=graph_defs.FLOAT, out_type=_INT32))


@pytest.mark.parametrize('device, home', [(_CPU, _ON_CPU), (_GPU, _ON_GPU)])
def test_where_a_program_has_gpus_an_op_is_at_home_where_it_is(device, home):
  assert _same_numbers(*_nodes(device)) == {
      'shape': _FREE, 'bits': _FREE, 'product': home, 'size': _FREE
  }


@pytest.mark.parametrize('device, home', [(_CPU, _ON_CPU), (_GPU, _ON_GPU)])
def test_a_lookup_stays_where_a_bad_index_has_the_same_effect(device, home):
  """On a GPU the index -1 gave zeros, and the step failed on the CPU."""
  lookup = graph_defs.node('rows', 'GatherV2', ['bits', 'shape', 'axis'],
                           device, Tparams=graph_defs.FLOAT, Tindices=_INT32,
                           Taxis=_INT32)
  assert _same_numbers(*_nodes(device), _axis(device), lookup)['rows'] == home


def _axis(device):
  axis = graph_defs.node('axis', 'Const', device=device, dtype=_INT32)
  axis.attr['value'].tensor.dtype = 3
  axis.attr['value'].tensor.tensor_shape.SetInParent()
  axis.attr['value'].tensor.int_val.append(0)
  return axis


@pytest.mark.parametrize('table, home', [('read', _FREE), ('bits', _ON_GPU)])
def test_a_lookup_may_follow_its_table_to_the_host(table, home):
  """A table under tf.device('/CPU:0') was sent to the GPU in each step."""
  variable = graph_defs.node('variable', '_Arg', (), _CPU, T={'type': 20},
                             index={'i': 0}, _gdp_pin=b'CPU:0')
  variable.attr['_handle_dtypes'].list.type.append(1)
  shape = variable.attr['_handle_shapes'].list.shape.add()
  shape.dim.add(size=8)
  shape.dim.add(size=8)
  read = graph_defs.node('read', 'ReadVariableOp', ['variable'], _CPU,
                         dtype=graph_defs.FLOAT)
  lookup = graph_defs.node('rows', 'GatherV2', [table, 'shape', 'axis'], _GPU,
                           Tparams=graph_defs.FLOAT, Tindices=_INT32,
                           Taxis=_INT32)
  assert _same_numbers(*_nodes(_GPU), _axis(_GPU), variable, read,
                       lookup)['rows'] == home


@pytest.mark.parametrize('live', [False, True])
def test_where_a_program_has_none_what_can_be_on_one_is_at_home_there(live):
  found = _same_numbers(*_nodes(_CPU), devices=(_CPU,), live=live)
  assert found['product'] == _ON_GPU and found['size'] == _FREE


def test_a_graph_that_says_no_devices_is_one_for_gpus():
  assert _same_numbers(*_nodes(), devices=(), live=False)['product'] == _ON_GPU


def test_what_is_kept_from_gpus_is_at_home_on_the_cpu():
  pinned = _nodes(_gdp_pin=b'CPU:0')
  assert _same_numbers(*pinned, devices=(), live=False)['product'] == _ON_CPU
  with_host = _nodes(_class=(b'loc:@text',))
  text = graph_defs.node('text', 'StringLength', ['words'])
  words = graph_defs.node('words', 'Placeholder', dtype={'type': 7})
  assert _same_numbers(words, text, *with_host, devices=(),
                       live=False)['product'] == _ON_CPU


def test_captured_where_there_were_gpus_an_op_is_at_home_where_it_was():
  found = _same_numbers(*_nodes(_CPU), live=False)
  assert found['product'] == _ON_CPU


def test_a_variable_that_waits_on_the_host_may_go_to_a_gpu():

  def home(**attributes):
    variable = graph_defs.node('variable', '_Arg', (), _CPU, T={'type': 20},
                               index={'i': 0}, **attributes)
    variable.attr['_handle_dtypes'].list.type.append(1)
    shape = variable.attr['_handle_shapes'].list.shape.add()
    shape.dim.add(size=8)
    shape.dim.add(size=8)
    update = graph_defs.node('update', 'AssignSubVariableOp',
                             ['variable', 'bits'], _CPU, dtype=graph_defs.FLOAT)
    return _same_numbers(*_nodes(_GPU), variable, update)['update']

  assert home() == _ON_CPU
  assert home(_gdp_waits_on_host={'b': True}) == _FREE


def _allowed(*nodes, cluster='2xP100', **how):
  graph = graph_def_io.read(
      graph_defs.source(graph_defs.graph_def(*nodes), devices=()))
  graph = graph.replace(**how)
  allowed = constraints.allowed_devices(graph, presets.preset(cluster))
  return dict(zip(graph.names, allowed[graph.groups].tolist()))


def test_a_product_leaves_its_gpus_only_if_it_may_round():
  assert _allowed(*_nodes())['product'] == [False, True, True]
  assert _allowed(*_nodes())['size'] == [True] * 3
  assert _allowed(*_nodes(), may_round=True)['product'] == [True] * 3


def test_a_cluster_of_one_kind_has_no_such_rule():
  assert _allowed(*_nodes(), cluster='cpu')['product'] == [True]


def test_a_pin_of_the_program_is_obeyed():
  nodes = _nodes(_gdp_pin=b'CPU:0')
  assert _allowed(*nodes)['product'] == [True, False, False]


def test_a_variable_goes_with_the_strictest_of_what_works_on_it():

  def make():
    tf1 = tf.compat.v1
    table = tf1.get_variable('table', [8, 8], use_resource=True,
                             initializer=tf1.zeros_initializer())
    tf.identity(table, name='value')
    looked_up = tf1.get_variable('looked_up', [8, 8], use_resource=True,
                                 initializer=tf1.zeros_initializer())
    tf.gather(looked_up, [1, 2], name='rows')
    trained = tf1.get_variable('trained', [8, 8], use_resource=True,
                               initializer=tf1.zeros_initializer())
    tf1.assign_sub(trained, tf.ones([8, 8]))

  graph_def = graph_defs.built(make)
  graph = graph_def_io.read(graph_defs.source(graph_def, devices=()))
  allowed = constraints.allowed_devices(graph, presets.preset('2xP100'))
  on = dict(zip(graph.names, allowed[graph.groups].tolist()))
  assert on['table'] == [True] * 3
  assert on['looked_up'] == [False, True, True]
  assert on['trained'] == [False, True, True]


@pytest.mark.parametrize('device, expected', [
    ('/job:w/task:1/device:GPU:1', 'GPU'),
    ('GPU:1', 'GPU'),
    ('/gpu:1', 'GPU'),
    ('/cpu:0', 'CPU'),
])
def test_type_of_a_device(device, expected):
  """A name in small letters had no type."""
  found = rounding.device_type(device)
  assert op_graph.DEVICE_TYPES[found] == expected


@pytest.mark.parametrize('device', ['', '/job:w/task:1', '/device:TPU:0'])
def test_other_devices_have_no_type(device):
  assert rounding.device_type(device) == -1
