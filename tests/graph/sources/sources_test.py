"""Tests of gdp_grappler.graph.sources.sources and what it reads with."""

import collections
import pathlib
import shutil
import textwrap

from google.protobuf import text_format
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.evaluation.measuring import runnable
from gdp_grappler.graph.sources import origin
from gdp_grappler.graph.sources import sources
from gdp_grappler.graph.sources import tracing_worker
from helpers import forked_tracing

tf1 = tf.compat.v1
TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'
CAPTURED = TESTDATA / 'dense_train_step.pb'
MODELS = textwrap.dedent('''
    import keras

    layers = keras.layers
    answer = 42

    def plain():
      return keras.Sequential([
          layers.Input((12,)), layers.Dense(8, 'relu'),
          layers.Dense(3, 'softmax')])

    def two_ends():
      a, b = keras.Input((4,), name='a'), keras.Input((None, 3), name='b')
      h = layers.Concatenate()([a, layers.GlobalAveragePooling1D()(b)])
      model = keras.Model({'a': a, 'b': b}, {
          'p': layers.Dense(1, activation='sigmoid', name='p')(h),
          'q': layers.Dense(2, name='q')(h)})
      model.compile('sgd', {'p': 'binary_crossentropy', 'q': 'mse'},
                    jit_compile=True)
      return model

    def number():
      return 3

    def failing():
      raise ValueError('no\\nmodel today')

    def leaving():
      raise SystemExit(3)

    def shapeless():
      return keras.Sequential([layers.Dense(3)])
    ''')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """A directory with a module, SavedModels and graphs of every kind."""
  result = tmp_path_factory.mktemp('sources')
  (result / 'some_models.py').write_text(MODELS)
  (result / 'half_module.py').write_text('import no_such_thing_at_all\n')
  module = Doubler()
  tf.saved_model.save(module, str(result / 'doubler'),
                      {'serving_default': module.double, 'other': module.add})
  v1_graph(result)
  return result


@pytest.fixture(scope='module', autouse=True)
def forked():
  """`tracing_test` starts a process."""
  with forked_tracing.forks():
    yield


@pytest.fixture(autouse=True)
def in_folder(folder, monkeypatch):
  monkeypatch.chdir(folder)
  monkeypatch.syspath_prepend(str(folder))


class Doubler(tf.Module):
  """Has a loop behind one signature and a variable behind both."""

  def __init__(self):
    super().__init__()
    self.weight = tf.Variable(tf.ones((5, 5)))

  @tf.function(input_signature=[tf.TensorSpec((None, 5), name='x')])
  def double(self, x):
    _, x = tf.while_loop(lambda i, _: i < 3, lambda i, x:
                         (i + 1, tf.matmul(x, self.weight)), (0, x))
    return {'y': x}

  @tf.function(input_signature=[tf.TensorSpec((None, 5), name='x')])
  def add(self, x):
    return {'y': x + self.weight[0]}


def v1_graph(folder):
  """A training graph in all its files: v1.{meta,pb,pbtxt}, v1_saved/."""
  graph = tf.Graph()
  with graph.as_default():
    x = tf1.placeholder(tf.float32, (None, 8), name='x')
    old = tf1.get_variable('old', (8, 4), use_resource=False)
    new = tf1.get_variable('new', (4,), use_resource=True)
    y = tf.add(tf.matmul(x, old), new, name='y')
    loss = tf.reduce_mean(y**2, name='loss')
    train = tf1.train.GradientDescentOptimizer(.1).minimize(loss, name='train')
    initialize = tf1.global_variables_initializer()
    tf1.train.Saver()
    tf1.train.export_meta_graph(str(folder / 'v1.meta'))
    del tf1.get_collection_ref('train_op')[:]
    assert train.name == 'train'
    with tf1.Session() as session:
      session.run(initialize)
      tensors = [tf1.saved_model.build_tensor_info(t) for t in (x, y)]
      signature = tf1.saved_model.build_signature_def({'x': tensors[0]},
                                                      {'y': tensors[1]})
      builder = tf1.saved_model.Builder(str(folder / 'v1_saved'))
      builder.add_meta_graph_and_variables(session, ['serve'],
                                           {'serving_default': signature})
      builder.save()
  graph_def = graph.as_graph_def()
  (folder / 'v1.pb').write_bytes(graph_def.SerializeToString())
  (folder / 'v1.pbtxt').write_text(text_format.MessageToString(graph_def))


def op_types(source):
  return collections.Counter(node.op for node in source.graph_def.node)


class TestFiles:

  def test_captured_graph(self):
    source = sources.load(str(CAPTURED))
    assert source.name == 'dense_train_step'
    assert source.fetches == ('identity_RetVal',)
    assert [d[-5:] for d in source.devices] == ['CPU:0', 'CPU:1', 'CPU:2']
    assert len(source.graph_def.node) == 192

  def test_name_of_the_caller(self):
    assert sources.load(str(CAPTURED), name='mine').name == 'mine'

  def test_content_counts_not_the_name(self, tmp_path):
    path = tmp_path / 'odd name.keras'
    shutil.copy(CAPTURED, path)
    assert len(sources.load(str(path)).graph_def.node) == 192

  def test_captured_graph_as_text(self, tmp_path):
    meta_graph = meta_graph_pb2.MetaGraphDef.FromString(CAPTURED.read_bytes())
    path = tmp_path / 'captured.pbtxt'
    path.write_text(text_format.MessageToString(meta_graph))
    assert sources.load(str(path)).name == 'dense_train_step'

  def test_meta_graph_is_run_for_its_train_op(self, folder):
    source = sources.load('v1.meta')
    assert source.name == 'v1'
    assert source.feeds == ('x',)
    assert source.fetches == ('train',)
    assert 'SaveV2' not in op_types(source)
    assert op_types(source)['ApplyGradientDescent'] == 1

  @pytest.mark.parametrize('path', ['v1.pb', 'v1.pbtxt'])
  def test_graph_def_is_run_for_its_sinks(self, path):
    source = sources.load(path)
    assert {'train', 'loss'} <= set(source.fetches)
    assert not {'init', 'save/restore_all'} & set(source.fetches)
    assert not {'SaveV2', 'RestoreV2', 'Assign'} & set(op_types(source))

  def test_without_pruning_all_nodes_stay(self, folder):
    graph_def = graph_pb2.GraphDef.FromString((folder / 'v1.pb').read_bytes())
    source = sources.unpruned(origin.Origin('v1.pb'))
    assert [n.name for n in source.graph_def.node
           ] == [n.name for n in graph_def.node]

  def test_signature_says_what_is_fetched(self, tmp_path):
    meta_graph = meta_graph_pb2.MetaGraphDef()
    meta_graph.graph_def.node.add(name='a', op='NoOp')
    meta_graph.graph_def.node.add(name='b', op='NoOp')
    meta_graph.signature_def['s'].outputs['o'].name = 'a:0'
    path = tmp_path / 'meta.pb'
    path.write_bytes(meta_graph.SerializeToString())
    source = sources.load(str(path))
    assert source.fetches == ('a',)
    assert [n.name for n in source.graph_def.node] == ['a']

  def test_functions_are_inlined(self, tmp_path):

    @tf.function
    def tripled(x):
      return tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * 2.),
                           (0, x))[1]

    graph = tf.Graph()
    with graph.as_default():
      x = tf1.placeholder(tf.float32, (2, 8), name='x')
      tf.identity(tripled(x) + 1, name='out')
    path = tmp_path / 'functions.pb'
    path.write_bytes(graph.as_graph_def().SerializeToString())
    source = sources.load(str(path))
    assert source.fetches == ('out',)
    types = op_types(source)
    assert not {
        'While', 'StatelessWhile', 'PartitionedCall', 'StatefulPartitionedCall'
    } & set(types)
    assert types['Merge'] and types['NextIteration']


class TestTraced:

  def test_keras_model_becomes_its_training_step(self):
    notes = []
    source = sources.load('some_models:plain', tell=notes.append, batch_size=6)
    assert source.name == 'plain'
    types = op_types(source)
    assert types['IteratorGetNext'] == 1 and types['_Retval'] == 1
    assert types['SparseSoftmaxCrossEntropyWithLogits'] == 1
    assert types['_FusedMatMul'] == 2  # Grappler has been there.
    assert types['AssignAddVariableOp'] >= 8  # Adam: two slots a variable.
    assert any('Adam and sparse_categorical_crossentropy' in n for n in notes)
    assert any('batches of 6' in n for n in notes)
    shapes = [v.shape for v in runnable.convert(source).variables]
    assert shapes.count((12, 8)) == 3 and (6, 12) in shapes

  @pytest.mark.e2e
  def test_application_becomes_its_training_step(self):
    source = sources.load('keras_applications:MobileNet', batch_size=2)
    assert source.name == 'MobileNet'
    types = op_types(source)
    assert types['DepthwiseConv2dNative'] == 13
    assert types['DepthwiseConv2dNativeBackpropFilter'] == 13
    shapes = [v.shape for v in runnable.convert(source).variables]
    assert (2, 224, 224, 3) in shapes and shapes.count((3, 3, 3, 32)) == 3

  def test_compiled_model_with_two_ends(self):
    notes = []
    source = sources.load('some_models:two_ends', name='ends',
                          tell=notes.append)
    assert source.name == 'ends'
    assert any('unknown dimensions' in n for n in notes)
    assert not any('Adam' in n for n in notes)
    types = op_types(source)
    assert types['MatMul'] + types['_FusedMatMul'] >= 4
    assert not types['StatefulPartitionedCall']  # Nothing hidden by XLA.

  # Keras 3.15 has not yet caught up with NumPy 2's `__array__`.
  @pytest.mark.filterwarnings('ignore:__array__ impl:DeprecationWarning')
  def test_keras_file(self, folder):
    import keras
    model = keras.Sequential([keras.layers.Input((5,)), keras.layers.Dense(2)])
    model.compile('adam', 'mse')
    model.save(folder / 'small.keras')
    shutil.copy(folder / 'small.keras', folder / 'odd.zip')
    source = sources.load('odd.zip')
    assert source.name == 'odd'
    assert op_types(source)['IteratorGetNext'] == 1

  def test_saved_model(self):
    source = sources.load('doubler', batch_size=4)
    types = op_types(source)
    assert source.name == 'doubler'
    assert not {'While', 'StatelessWhile', 'StatefulPartitionedCall'
               } & set(types)
    assert types['NextIteration']
    assert (4, 5) in [v.shape for v in runnable.convert(source).variables]

  def test_v1_saved_model_by_its_file(self):
    source = sources.load('v1_saved/saved_model.pb')
    assert source.name == 'v1_saved'
    assert {'MatMul', '_FusedMatMul'} & set(op_types(source))

  def test_unknown_signature(self):
    check_error('doubler', 'no signature "third"', 'other, serving_default',
                signature='third')

  def test_nothing_of_the_tracing_itself_is_in_the_graph(self):
    source = sources.load('some_models:plain')
    assert not {'_DeviceArg', '_DeviceRetval'} & set(op_types(source))
    assert not {'input', 'output_RetVal'
               } & {node.name for node in source.graph_def.node}
    assert source.fetches == ('identity_RetVal',)


class TestBadInput:

  @pytest.mark.parametrize('content, reason', [
      (b'', 'empty'),
      (b'hello\nworld\n', 'text but no GraphDef'),
      (b'\x80\x01\xff\x00\x17', 'cut off or damaged'),
      (b'PK\x03\x04 and no more', 'damaged archive'),
      (CAPTURED.read_bytes()[:20_000], 'cut off or damaged'),
      (b'\x22\x02\x08\x01', 'no nodes'),
  ])
  def test_bytes(self, tmp_path, content, reason):
    path = tmp_path / 'bad.pb'
    path.write_bytes(content)
    check_error(str(path), reason, str(path))

  @pytest.mark.parametrize('text, parts', [
      ('node { name: "a" op: "Identity" input: "gone:1" }',
       ['"a" reads "gone:1"', 'cut off']),
      ('node { name: "a" op: "NoOp" } node { name: "a" op: "NoOp" }',
       ['node "a" appears twice']),
      ('node { name: "a" op: "NoSuchOpAnywhere" }',
       ['NoSuchOpAnywhere', 'tf.load_op_library']),
      ('graph_def { node { name: "a" op: "NoOp" } } signature_def { key: "s" '
       'value { outputs { key: "o" value { name: "z:0" } } } }',
       ['"z" is to be fed or fetched']),
  ])
  def test_graphs(self, tmp_path, text, parts):
    path = tmp_path / 'bad.pbtxt'
    path.write_text(text)
    check_error(str(path), *parts)

  def test_missing(self):
    check_error('nowhere.pb', 'nowhere.pb does not exist', 'SavedModel')

  def test_directory_without_a_model(self, tmp_path):
    check_error(str(tmp_path), 'neither saved_model.pb')

  def test_damaged_saved_model(self, tmp_path):
    (tmp_path / 'saved_model.pb').write_bytes(b'\x80\x01\xff')
    check_error(str(tmp_path), 'cut off or damaged', 'Write it again')

  @pytest.mark.parametrize('path, parts', [
      ('some_models:number', ['returned int', 'Return a keras.Model']),
      ('no_such_module:f', ["No module named 'no_such_module'"]),
  ])
  def test_functions_in_the_process_that_traces(self, path, parts):
    check_error(path, path.split(':')[0], *parts)

  @pytest.mark.parametrize('path, part', [
      ('half_module:f', "No module named 'no_such_thing_at_all'"),
      ('string:nothing', 'has no function "nothing"'),
      ('string:digits', 'has no function "digits"'),
      ('some_models:failing', 'raised ValueError: no model today.'),
      ('some_models:leaving', 'raised SystemExit: 3'),
  ])
  def test_functions(self, path, part):
    with pytest.raises(errors.InvalidGraphError) as caught:
      tracing_worker.call_function(path)
    assert part in str(caught.value) and '\n' not in str(caught.value)

  @pytest.mark.parametrize('name, part',
                           [('EficientNetB0', ' "EficientNetB0". Did you mean '
                             '"EfficientNetB0'),
                            ('resnet50', 'Did you mean "ResNet50" or "'),
                            ('keras', 'There are ConvNeXt')])
  def test_unknown_applications(self, name, part):
    with pytest.raises(errors.InvalidGraphError) as caught:
      tracing_worker.load_application(f'keras_applications:{name}')
    assert part in str(caught.value) and '\n' not in str(caught.value)

  @pytest.mark.parametrize(
      'name, content',
      [('g.pb', b'{"nodes": []}'),
       ('g.json', b'node { name: "a" id: 1 compute_cost: 3 }')])
  def test_graphs_that_are_costs_alone(self, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    check_error(str(tmp_path / name), 'graph of costs without TensorFlow ops',
                'gdp simulate')

  def test_model_without_inputs(self):
    check_error('some_models:shapeless', 'does not know its inputs',
                'GDP_CAPTURE_DIR')

  def test_damaged_keras_file(self, folder):
    with pytest.raises(errors.InvalidGraphError, match='Keras cannot load'):
      path = folder / 'bad.h5'
      path.write_bytes(b'\x89HDF\r\n\x1a\n')
      tracing_worker.load_keras(str(path))


def check_error(path, *parts, **options):
  """Loading raises an InvalidGraphError of one line with all parts."""
  with pytest.raises(errors.InvalidGraphError) as caught:
    sources.load(path, **options)
  message = str(caught.value)
  assert '\n' not in message
  for part in parts:
    assert part in message
