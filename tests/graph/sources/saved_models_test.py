"""What a signature of a SavedModel becomes, and that nothing of it runs."""

from __future__ import annotations

import collections
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_shape_pb2
from tensorflow.core.protobuf import saved_model_pb2

from gdp_grappler import errors
from gdp_grappler.evaluation.measuring import runnable
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import pruning
from gdp_grappler.graph.sources import sources
from helpers import hostile


class _Training(tf.Module):
  """A step that updates a variable and its slot, on a constant of its own."""

  def __init__(self) -> None:
    super().__init__()
    self.weight, self.slot = tf.Variable(tf.ones(
        (8, 4))), tf.Variable(tf.zeros((8, 4)))
    self.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(['a', 'b'], [0., 1.]), -1.)
    self.constant = tf.constant(np.arange(6.), tf.float32)

  @tf.function(input_signature=[
      tf.TensorSpec((None, 8), name='x'),
      tf.TensorSpec((None,), tf.string, name='label'),
  ])
  def train(self, x: tf.Tensor, label: tf.Tensor) -> dict[str, tf.Tensor]:
    with tf.GradientTape() as tape:
      said = tf.matmul(tf.nn.dropout(x, .5), self.weight)
      loss = tf.reduce_mean((said[:, 0] - self.table.lookup(label))**
                            2) + tf.reduce_sum(self.constant)
    gradient = tape.gradient(loss, self.weight)
    self.slot.assign(self.slot * .9 + gradient)
    self.weight.assign_sub(.1 * self.slot)
    return {'loss': loss, 'said': said}


@pytest.fixture(name='training', scope='module')
def _training(tmp_path_factory) -> pathlib.Path:
  folder = tmp_path_factory.mktemp('models') / 'training'
  module = _Training()
  tf.saved_model.save(module, str(folder), {'train': module.train})
  return folder


def _types(source: source_graph.SourceGraph) -> collections.Counter:
  return collections.Counter(node.op for node in source.graph_def.node)


def test_a_training_signature_keeps_variables_and_updates(training):
  source = sources.load(str(training), batch_size=4)
  types = _types(source)
  assert source.name == 'training'
  assert source.fetches == ('gdp_result_0_RetVal', 'gdp_result_1_RetVal')
  assert types['VarHandleOp'] == 2 and types['_Retval'] == 2
  assert types['AssignVariableOp'] == types['AssignSubVariableOp'] == 1
  assert not {'StatefulPartitionedCall', 'RestoreV2', 'SaveV2'} & set(types)
  graph = graph_def_io.read(source)
  assert sorted(graph.param_bytes[graph.param_bytes > 0]) == [8 * 4 * 4] * 2
  # Each with its reads and updates. What is fed and returned is not free.
  handles = [
      graph.groups[i] for i, t in enumerate(graph.op_types)
      if t.endswith('VariableOp') or t == 'VarHandleOp'
  ]
  assert len(set(handles)) == 2
  pinned = {t for t, pin in zip(graph.op_types, graph.pins) if pin}
  # The table follows the lookup of a string.
  assert pinned == {'Placeholder', '_Retval', 'LookupTableFindV2'}


def test_what_is_left_open_gets_a_size(training):
  source = sources.load(str(training), batch_size=6)
  shapes = [v.shape for v in runnable.convert(source).variables]
  assert (6, 8) in shapes and not source.leaves_sizes_open()


def test_as_many_bytes_and_flops_as_the_function_itself(training):
  """The numbers of the function that TensorFlow would run."""
  source = sources.load(str(training), batch_size=6)
  graph = graph_def_io.read(source)
  matmuls = [
      flops for flops, op in zip(graph.flops, graph.op_types) if op == 'MatMul'
  ]
  assert matmuls == [2 * 6 * 8 * 4] * 2  # Forward, and back to the weight.


def test_nothing_runs(tmp_path):
  """A WriteFile in a signature was executed."""
  owned = tmp_path / 'owned'
  source = sources.load(str(hostile.model(tmp_path / 'model', owned)))
  types = _types(source)
  # They are what a step does, so they are placed.
  assert types['WriteFile'] == types['ReadFile'] == 1
  assert not types['InitializeTableFromTextFileV2']
  assert graph_def_io.read(source).num_ops > 4
  assert not owned.exists()


def test_a_model_that_no_tensorflow_could_load_is_read(training, tmp_path):
  """Neither variables nor the objects behind them are looked at."""
  model = saved_model_pb2.SavedModel.FromString(
      (training / 'saved_model.pb').read_bytes())
  model.meta_graphs[0].ClearField('object_graph_def')
  (tmp_path / 'saved_model.pb').write_bytes(model.SerializeToString())
  assert _types(sources.load(str(tmp_path))) == _types(
      sources.load(str(training)))


@pytest.mark.parametrize('make, count', [(tf.sparse.from_dense, 3),
                                         (tf.RaggedTensor.from_tensor, 2)])
def test_an_output_may_have_several_tensors(tmp_path, make, count):
  """Its own name is empty, and the file was said to be cut off."""
  module = tf.Module()
  module.serve = tf.function(lambda x: {'y': make(x)},
                             input_signature=[tf.TensorSpec((None, 8))])
  tf.saved_model.save(module, str(tmp_path), {'serve': module.serve})
  source = sources.load(str(tmp_path))
  assert len(source.fetches) == _types(source)['_Retval'] == count
  model = saved_model_pb2.SavedModel.FromString(
      (tmp_path / 'saved_model.pb').read_bytes())
  fetches = pruning.declared_fetches(model.meta_graphs[0])
  assert any(name.endswith('PartitionedCall') for name in fetches)


def _edited(training: pathlib.Path, folder: pathlib.Path, edit) -> str:
  model = saved_model_pb2.SavedModel.FromString(
      (training / 'saved_model.pb').read_bytes())
  edit(model)
  (folder / 'saved_model.pb').write_bytes(model.SerializeToString())
  return str(folder)


def _unknown_op(model: saved_model_pb2.SavedModel) -> None:
  for function in model.meta_graphs[0].graph_def.library.function:
    for node in function.node_def:
      if node.op == 'MatMul':
        node.op = 'NoSuchOp'


def _rankless(model: saved_model_pb2.SavedModel) -> None:
  for node in model.meta_graphs[0].graph_def.node:
    if node.op == 'Placeholder':
      node.attr['shape'].shape.CopyFrom(
          tensor_shape_pb2.TensorShapeProto(unknown_rank=True))


def _lost_output(model: saved_model_pb2.SavedModel) -> None:
  model.meta_graphs[0].signature_def['train'].outputs['loss'].name = 'gone:0'


@pytest.mark.parametrize('edit, part', [
    (lambda m: m.meta_graphs.add().CopyFrom(m.meta_graphs[0]), '2 graphs'),
    (lambda m: m.meta_graphs[0].signature_def.clear(), 'no serving_default'),
    (_unknown_op, 'NoSuchOp'),
    (_rankless, 'number of dimensions'),
    (_lost_output, 'gone'),
])
def test_what_cannot_be_used_is_one_line(training, tmp_path, edit, part):
  with pytest.raises(errors.InvalidGraphError) as caught:
    sources.load(_edited(training, tmp_path, edit))
  assert part in str(caught.value) and '\n' not in str(caught.value)
