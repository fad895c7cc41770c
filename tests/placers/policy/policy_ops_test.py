"""Policies that would do more than compute are not loaded."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import json
import pathlib

import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.features import schema
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import policy_ops
from gdp_grappler.placers.policy import shipped_policy
from helpers import hostile
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib


def _small(**changes):
  return config_lib.PlacerConfig(type_buckets=8, type_units=4, hidden_units=8,
                                 heads=2, head_units=4, feed_forward_units=8,
                                 segment_length=8, device_units=8, **changes)


# Each part of the network that has ops of its own is present once and absent
# once.
@pytest.mark.parametrize('attention, superposition, layers', [(True, True, 1),
                                                              (False, False, 0),
                                                              (True, False, 1)])
def test_every_export_is_taken(attention, superposition, layers):
  network = network_lib.PlacerNetwork(
      _small(attention=attention, superposition=superposition,
             graph_layers=layers, transformer_layers=layers))
  graph = export.Policy(network).place.get_concrete_function().graph
  found = graph.as_graph_def()
  ops = {node.op for node in found.node}
  ops |= {n.op for f in found.library.function for n in f.node_def}
  assert ops <= policy_ops.OPS


def test_what_is_shipped_is_taken():
  policy_ops.check(pathlib.Path(shipped_policy.shipped_policy()))


@pytest.mark.parametrize('op', [*hostile.SIDE_EFFECTS, 'LoadLibrary'])
def test_ops_that_reach_outside_are_refused(tmp_path, monkeypatch, op):
  monkeypatch.chdir(tmp_path)
  folder = hostile.policy(tmp_path / 'policy',
                          hostile.SIDE_EFFECTS.get(op, tf.no_op))

  def renamed(model):
    for function in model.meta_graphs[0].graph_def.library.function:
      for node in function.node_def:
        if node.op == 'AddV2':
          node.op = op

  if op not in hostile.SIDE_EFFECTS:  # An op without a model of its own.
    hostile.edited(folder, renamed)
  with pytest.raises(errors.PolicyMismatchError, match=f'the op {op}'):
    registry.create('gdp_one_shot', str(folder))
  assert not (tmp_path / 'owned').exists()


@pytest.mark.parametrize('message', hostile.CHANGES)
def test_other_ways_to_run_something_are_refused(tmp_path, message):
  folder = hostile.policy(tmp_path / 'policy', tf.no_op)
  policy_ops.check(folder)
  hostile.CHANGES[message](folder)
  with pytest.raises(errors.PolicyMismatchError, match=message):
    policy_ops.check(folder)


def test_a_function_named_like_an_op_would_run(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  message = 'a function named like the op Xlogy'
  folder = hostile.policy(tmp_path / 'policy', tf.no_op)
  hostile.CHANGES[message](folder)
  tf.saved_model.load(str(folder)).place(1.)
  assert (tmp_path / 'owned').exists()  # Without the check, the code runs.
  (tmp_path / 'owned').unlink()
  with pytest.raises(errors.PolicyMismatchError, match=message):
    registry.create('gdp_one_shot', str(folder))
  assert not (tmp_path / 'owned').exists()


class _Restoring(tf.Module):
  """An object with a function that TensorFlow calls while it loads."""

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
  module = hostile.Module(tf.no_op)
  module.state = _Restoring(str(owned))
  tf.saved_model.save(module, str(folder))
  tf.saved_model.load(str(folder))
  assert owned.exists()  # Without the check, the code runs.
  owned.unlink()
  (folder / 'policy.json').write_text(
      json.dumps({'schema': schema.fingerprint()}))
  with pytest.raises(errors.PolicyMismatchError, match='restores itself'):
    registry.create('gdp_one_shot', str(folder))
  assert not owned.exists()


def test_sizes_have_limits(tmp_path, monkeypatch):
  folder = hostile.policy(tmp_path / 'policy', tf.no_op)
  for name in ('_MAX_MODEL_BYTES', '_MAX_WEIGHTS_BYTES'):
    with monkeypatch.context() as patch:
      patch.setattr(policy_ops, name, 10)
      with pytest.raises(errors.PolicyMismatchError, match='are enough'):
        policy_ops.check(folder)


def test_a_function_may_not_hide_an_op(tmp_path):
  folder = hostile.policy(tmp_path / 'policy',
                          lambda: tf.io.read_file('/etc/hostname'))

  def shadow(model):
    library = model.meta_graphs[0].graph_def.library
    library.function.add().signature.name = 'ReadFile'

  hostile.edited(folder, shadow)
  with pytest.raises(errors.PolicyMismatchError, match='like the op ReadFile'):
    policy_ops.check(folder)


def _exported(folder):
  hostile.policy(folder, tf.no_op)
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
    registry.create('gdp_one_shot', str(folder))


def test_policies_without_digests_are_taken(tmp_path):
  policy_ops.check_whole(hostile.policy(tmp_path / 'policy', tf.no_op), {})
