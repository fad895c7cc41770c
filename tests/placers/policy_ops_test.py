"""Policies that would do more than compute are not loaded."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import json
import pathlib
import shutil

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from gdp_grappler import errors
from gdp_grappler.features import schema
from gdp_grappler.placers import policy_ops
from gdp_grappler.placers import registry
from gdp_grappler.placers import trainer
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib


def _small(**changes):
  return config_lib.PlacerConfig(type_buckets=8, type_units=4, hidden_units=8,
                                 heads=2, head_units=4, feed_forward_units=8,
                                 segment_length=8, device_units=8, **changes)


# What brings ops of its own into the graph, each on and off.
@pytest.mark.parametrize('attention, superposition, max_neighbors, layers',
                         [(True, True, 4, 1), (False, False, 0, 0),
                          (True, False, 0, 2)])
def test_every_export_is_taken(attention, superposition, max_neighbors, layers):
  network = network_lib.PlacerNetwork(
      _small(attention=attention, superposition=superposition,
             max_neighbors=max_neighbors, graph_layers=layers,
             transformer_layers=layers))
  graph = export.Policy(network).place.get_concrete_function().graph
  found = graph.as_graph_def()
  ops = {node.op for node in found.node}
  ops |= {n.op for f in found.library.function for n in f.node_def}
  assert ops <= policy_ops.OPS


def test_what_is_shipped_is_taken():
  policy_ops.check(pathlib.Path(trainer.shipped_policy()))


class _Module(tf.Module):
  """A policy that does something else on the side."""

  def __init__(self, side_effect):
    super().__init__()
    self._side_effect = side_effect

  @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
  def place(self, value):
    return self.inner(value)

  @tf.function
  def inner(self, value):
    self._side_effect()
    return value + 1.


def _hostile(folder, side_effect):
  tf.saved_model.save(_Module(side_effect), str(folder))
  (folder / 'policy.json').write_text(
      json.dumps({'schema': schema.fingerprint()}))
  return folder


@pytest.mark.parametrize('op, side_effect', [
    ('ReadFile', lambda: tf.io.read_file('/etc/hostname')),
    ('WriteFile', lambda: tf.io.write_file('owned', 'x')),
    ('MatchingFiles', lambda: tf.io.matching_files('/*')),
    ('PrintV2', lambda: tf.print('x')),
    ('EagerPyFunc', lambda: tf.py_function(lambda: 1., [], tf.float32)),
    ('SaveV2',
     lambda: tf.raw_ops.SaveV2(prefix='owned', tensor_names=['x'],
                               shape_and_slices=[''], tensors=[tf.zeros([])])),
    ('LoadLibrary', None),
])
def test_ops_that_reach_outside_are_refused(tmp_path, monkeypatch, op,
                                            side_effect):
  monkeypatch.chdir(tmp_path)
  folder = _hostile(tmp_path / 'policy', side_effect or tf.no_op)
  if side_effect is None:  # Any name that TensorFlow may come to know.
    path = folder / 'saved_model.pb'
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for function in model.meta_graphs[0].graph_def.library.function:
      for node in function.node_def:
        if node.op == 'AddV2':
          node.op = op
    path.write_bytes(model.SerializeToString())
  with pytest.raises(errors.PolicyMismatchError, match=f'the op {op}'):
    registry.create('gdp_policy', str(folder))
  assert not (tmp_path / 'owned').exists()


def _edited(folder, edit):
  path = folder / 'saved_model.pb'
  model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
  edit(model)
  path.write_bytes(model.SerializeToString())


def _with_table(folder):
  module = _Module(tf.no_op)
  module.table = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(['a'], [1]), 0)
  shutil.rmtree(folder)
  tf.saved_model.save(module, str(folder))
  (folder / 'policy.json').write_text(
      json.dumps({'schema': schema.fingerprint()}))


def _objects(change):
  return lambda folder: _edited(
      folder, lambda m: change(m.meta_graphs[0].object_graph_def.nodes))


def _calling_itself(model):
  for function in model.meta_graphs[0].graph_def.library.function:
    for node in function.node_def:
      if node.attr['f'].func.name:
        node.attr['f'].func.name = function.signature.name


@pytest.mark.parametrize('spoil, message', [
    (_objects(lambda nodes: nodes[0].saveable_objects['x'].SetInParent()),
     'restores itself'),
    (_objects(lambda nodes: nodes[0].slot_variables.add()), 'restores itself'),
    (_objects(lambda nodes: nodes[0].children.add(
        local_name='_restore_from_tensors')), 'an attribute'),
    (_objects(lambda nodes: nodes[0].children.add(local_name='3000000000')),
     'an attribute'),
    (lambda f: _edited(f, _calling_itself), 'calls itself'),
    (lambda f: _edited(f, lambda m: m.meta_graphs.add()), '2 graphs'),
    (lambda f: _edited(
        f, lambda m: m.meta_graphs[0].ClearField('object_graph_def')),
     'no objects'),
    (lambda f: _edited(
        f, lambda m: m.meta_graphs[0].asset_file_def.add(filename='/etc/x')),
     'files of its own'),
    (_with_table, 'an object of the kind'),
    (lambda f: (f / 'saved_model.pbtxt').write_text(''), 'saved_model.pbtxt'),
    (lambda f: (f / 'variables' / 'inner').mkdir(), 'not a file'),
])
def test_other_ways_to_run_something_are_refused(tmp_path, spoil, message):
  folder = _hostile(tmp_path / 'policy', tf.no_op)
  policy_ops.check(folder)
  spoil(folder)
  with pytest.raises(errors.PolicyMismatchError, match=message):
    policy_ops.check(folder)


class _Restoring(tf.Module):
  """With a function of its own, which TensorFlow calls as it loads."""

  def __init__(self, path):
    super().__init__()
    self._path = path

  @tf.function(input_signature=[])
  def _serialize_to_tensors(self):
    return {'value': tf.constant(1.)}

  def _restore_from_tensors(self, tensors):
    with tf.control_dependencies([tf.io.write_file(self._path, 'x')]):
      return tf.identity(tensors['value'])


def test_what_restores_itself_is_not_loaded(tmp_path):
  folder, owned = tmp_path / 'policy', tmp_path / 'owned'
  module = _Module(tf.no_op)
  module.state = _Restoring(str(owned))
  tf.saved_model.save(module, str(folder))
  tf.saved_model.load(str(folder))
  assert owned.exists()  # It would do harm.
  owned.unlink()
  (folder / 'policy.json').write_text(
      json.dumps({'schema': schema.fingerprint()}))
  with pytest.raises(errors.PolicyMismatchError, match='restores itself'):
    registry.create('gdp_policy', str(folder))
  assert not owned.exists()


def test_sizes_have_limits(tmp_path, monkeypatch):
  folder = _hostile(tmp_path / 'policy', tf.no_op)
  for name in ('_MAX_MODEL_BYTES', '_MAX_WEIGHTS_BYTES'):
    with monkeypatch.context() as patch:
      patch.setattr(policy_ops, name, 10)
      with pytest.raises(errors.PolicyMismatchError, match='are enough'):
        policy_ops.check(folder)


def test_a_function_may_not_hide_an_op(tmp_path):
  folder = _hostile(tmp_path / 'policy',
                    lambda: tf.io.read_file('/etc/hostname'))

  def shadow(model):
    library = model.meta_graphs[0].graph_def.library
    library.function.add().signature.name = 'ReadFile'

  _edited(folder, shadow)
  with pytest.raises(errors.PolicyMismatchError, match='the op ReadFile'):
    policy_ops.check(folder)


def _exported(folder):
  _hostile(folder, tf.no_op)
  path = folder / 'policy.json'
  metadata = policy_ops.sealed(folder, json.loads(path.read_text()))
  path.write_text(json.dumps(metadata))
  policy_ops.check_whole(folder, metadata)
  return folder


def _flip(path):
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 4
  path.write_bytes(data)


@pytest.mark.parametrize('name', [
    'saved_model.pb', 'variables/variables.index',
    'variables/variables.data-00000-of-00001'
])
def test_a_flipped_bit_is_told(tmp_path, name):
  folder = _exported(tmp_path / 'policy')
  _flip(folder / name)
  metadata = json.loads((folder / 'policy.json').read_text())
  with pytest.raises(errors.PolicyMismatchError, match=f'damaged: {name}'):
    policy_ops.check_whole(folder, metadata)


@pytest.mark.parametrize('change',
                         [{'units': 'fine'}, {'files': {}}, {'digest': 0}])
def test_a_changed_description_is_told(tmp_path, change):
  folder = _exported(tmp_path / 'policy')
  metadata = json.loads((folder / 'policy.json').read_text())
  with pytest.raises(errors.PolicyMismatchError, match='policy.json is not'):
    policy_ops.check_whole(folder, {**metadata, **change})


def test_a_damaged_policy_is_not_loaded(tmp_path):
  folder = _exported(tmp_path / 'policy')
  (folder / 'variables' / 'more').write_text('')
  with pytest.raises(errors.PolicyMismatchError, match='variables/more'):
    registry.create('gdp_policy', str(folder))


def test_policies_without_digests_are_taken(tmp_path):
  policy_ops.check_whole(_hostile(tmp_path / 'policy', tf.no_op), {})
