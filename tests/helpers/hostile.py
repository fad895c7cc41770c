"""Makes hostile policies and models, which have side effects."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any, Callable

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from gdp_grappler.features import schema

Change = Callable[[pathlib.Path], object]


class Module(tf.Module):
  """A policy with a side effect."""

  def __init__(self, side_effect: Callable[[], object]) -> None:
    super().__init__()
    self._side_effect = side_effect

  @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
  def place(self, value: tf.Tensor) -> tf.Tensor:
    return self.inner(value)

  @tf.function
  def inner(self, value: tf.Tensor) -> tf.Tensor:
    self._side_effect()
    return value + 1.


def policy(folder: pathlib.Path, side_effect: Callable[[],
                                                       object]) -> pathlib.Path:
  """Writes a policy that differs from ours only by a side effect."""
  return _saved(folder, Module(side_effect))


def edited(folder: pathlib.Path, edit: Callable[[saved_model_pb2.SavedModel],
                                                object]) -> None:
  """Changes a SavedModel."""
  path = folder / 'saved_model.pb'
  model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
  edit(model)
  path.write_bytes(model.SerializeToString())


def _saved(folder: pathlib.Path, module: tf.Module) -> pathlib.Path:
  tf.saved_model.save(module, str(folder))
  (folder / 'policy.json').write_text(
      json.dumps({'schema': schema.fingerprint()}))
  return folder


def _write() -> tf.Operation:
  return tf.io.write_file('owned', 'x')


def _in_a_branch() -> None:
  tf.cond(tf.random.uniform([]) < 2, lambda: [_write(), 1][1], lambda: 0)


def _in_a_case() -> None:
  tf.switch_case(tf.constant(0), [lambda: [_write(), 1][1], lambda: 0])


def _in_a_loop() -> None:
  tf.while_loop(lambda i: i < 3, lambda i: [_write(), i + 1][1], (0,))


def _in_a_data_set() -> None:
  for _ in tf.data.Dataset.range(3).map(lambda i: [_write(), i][1]):
    pass


# Side effects, by the type of the op that reveals them.
SIDE_EFFECTS: dict[str, Callable[[], object]] = {
    'ReadFile':
        lambda: tf.io.read_file('/etc/hostname'),
    'WriteFile':
        _write,
    'MatchingFiles':
        lambda: tf.io.matching_files('/*'),
    'PrintV2':
        lambda: tf.print('x'),
    'EagerPyFunc':
        lambda: tf.py_function(float, [1.], tf.float32),
    'SaveV2':
        lambda: tf.raw_ops.SaveV2(prefix='owned', tensor_names=[
            'x'
        ], shape_and_slices=[''], tensors=[tf.zeros([])]),
    'If':
        _in_a_branch,
    'Case':
        _in_a_case,
    'While':
        _in_a_loop,
    'MapDataset':
        _in_a_data_set,
}


def _objects(change: Callable[[Any], object]) -> Change:
  return lambda folder: edited(
      folder, lambda m: change(m.meta_graphs[0].object_graph_def.nodes))


def _named_like_an_op(
    name: str) -> Callable[[saved_model_pb2.SavedModel], None]:
  """Returns a change that adds a writing function with the name of an op."""

  def change(model: saved_model_pb2.SavedModel) -> None:
    graph = model.meta_graphs[0]
    written = tf.function(
        lambda: [_write(), None][1]).get_concrete_function().function_def
    added = graph.graph_def.library.function.add()
    added.CopyFrom(written)
    added.signature.name = name
    root = graph.object_graph_def.nodes[0]
    place = next(c.node_id for c in root.children if c.local_name == 'place')
    called, = graph.object_graph_def.nodes[place].function.concrete_functions
    function = next(f for f in graph.graph_def.library.function
                    if f.signature.name == called)
    node = function.node_def.add(name='call', op='StatefulPartitionedCall')
    node.attr['f'].func.name = name
    node.attr['Tin'].list.SetInParent()
    node.attr['Tout'].list.SetInParent()
    function.control_ret['call'] = 'call'
    function.signature.control_output.append('call')

  return change


def _twice(model: saved_model_pb2.SavedModel) -> None:
  library = model.meta_graphs[0].graph_def.library
  library.function.add().CopyFrom(library.function[0])


def _calling_itself(model: saved_model_pb2.SavedModel) -> None:
  for function in model.meta_graphs[0].graph_def.library.function:
    for node in function.node_def:
      if node.attr['f'].func.name:
        node.attr['f'].func.name = function.signature.name


def _with_table(folder: pathlib.Path) -> None:
  module = Module(tf.no_op)
  module.table = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(['a'], [1]), 0)
  shutil.rmtree(folder)
  _saved(folder, module)


# Changes of a harmless policy, by the text of the refusal. After such a change,
# loading the policy would run code, never end or read files.
CHANGES: dict[str, Change] = {
    'an object that restores itself':
        _objects(lambda nodes: nodes[0].saveable_objects['x'].SetInParent()),
    'object that restores itself':
        _objects(lambda nodes: nodes[0].slot_variables.add()),
    "an attribute '_restore_from_tensors'":
        _objects(lambda nodes: nodes[0].children.add(local_name=
                                                     '_restore_from_tensors')),
    "an attribute '3000000000'":
        _objects(lambda nodes: nodes[0].children.add(local_name='3000000000')),
    # TensorFlow's loader prefers functions to ops of the same name.
    'a function named like the op Xlogy':
        lambda f: edited(f, _named_like_an_op('Xlogy')),
    'a function named like the op Cos':
        lambda f: edited(f, _named_like_an_op('Cos')),
    'the function .* twice':
        lambda f: edited(f, _twice),
    'calls itself':
        lambda f: edited(f, _calling_itself),
    '2 graphs':
        lambda f: edited(f, lambda m: m.meta_graphs.add()),
    'no objects':
        lambda f: edited(
            f, lambda m: m.meta_graphs[0].ClearField('object_graph_def')),
    'files of its own':
        lambda f: edited(
            f, lambda m: m.meta_graphs[0].asset_file_def.add(filename='/etc/x')
        ),
    'an object of the kind':
        _with_table,
    'saved_model.pbtxt':
        lambda f: (f / 'saved_model.pbtxt').write_text(''),
    'not a file':
        lambda f: (f / 'variables' / 'inner').mkdir(),
}


class Model(tf.Module):
  """A model that leaves a file behind when it is loaded or called."""

  def __init__(self, owned: pathlib.Path) -> None:
    super().__init__()
    self._owned = str(owned)
    vocabulary = owned.parent / 'vocabulary.txt'
    vocabulary.write_text('a\n')
    self.table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(str(vocabulary), tf.string,
                                      tf.lookup.TextFileIndex.WHOLE_LINE,
                                      tf.int64,
                                      tf.lookup.TextFileIndex.LINE_NUMBER), -1)

  @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, name='x')])
  def serve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
    tf.io.write_file(self._owned, tf.io.read_file('/etc/hostname'))
    return {'y': self.table.lookup(x)}


def model(folder: pathlib.Path, owned: pathlib.Path) -> pathlib.Path:
  """Writes a SavedModel whose signature and initializer leave `owned`."""
  module = Model(owned)
  tf.saved_model.save(module, str(folder), {'serving_default': module.serve})
  owned.unlink(missing_ok=True)
  return folder
