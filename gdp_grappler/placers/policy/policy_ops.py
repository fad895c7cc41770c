"""Checks the files of a policy before TensorFlow loads the policy.

A SavedModel is a program, and a policy may come from anybody. So a folder is
loaded only if loading and placing run no other ops than those of an exported
network. The ops of an exported network compute, and have no other effect. A
damaged policy is not loaded either: `policy.json` has digests of the files and
of itself.
"""

from __future__ import annotations

import hashlib
import pathlib
from typing import Any, Iterator, Mapping

from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler import files

# File of the graph in the folder of a SavedModel.
_FILE = 'saved_model.pb'
# Folder of the weights in the folder of a SavedModel.
_WEIGHTS = 'variables'
# Field of policy.json with the digests of the files.
_DIGESTS = 'files'
# Fields of policy.json that `sealed` adds.
SEALS = _DIGESTS, digests.FIELD
# Largest number of bytes of a policy's graph. An exported network with a
# hundred layers is smaller.
_MAX_MODEL_BYTES = 64 << 20
# Largest number of bytes of a policy's weights.
_MAX_WEIGHTS_BYTES = 1 << 30
# Ops that call functions. The ops of these functions are checked, too.
_CALLS = frozenset({'PartitionedCall', 'StatefulPartitionedCall'})
OPS = _CALLS | frozenset("""
    AddV2 All Assert BatchMatMulV2 BiasAdd Cast ConcatV2 Const Cos Cumsum
    DivNoNan Equal Fill FloorDiv GatherV2 Greater GreaterEqual Identity Less
    LessEqual Log Log1p LogicalAnd MatMul MatrixBandPart Max Maximum Mean
    Minimum Mul Neg NoOp OnesLike Pack Pad Placeholder Prod Range ReadVariableOp
    RealDiv Relu Reshape ResourceGather Rsqrt SelectV2 Shape Sigmoid Sin Softmax
    Split Square Squeeze StopGradient StridedSlice StringToHashBucketFast Sub
    Sum TopKV2 Transpose UnsortedSegmentMax UnsortedSegmentSum Where ZerosLike
    """.split())
# Kinds of objects of a SavedModel that loading creates without running ops.
_OBJECTS = frozenset(
    {'bare_concrete_function', 'constant', 'function', 'variable'})
# Identifiers of objects of the kind `user_object` that run no ops either.
_CONTAINERS = frozenset(
    {'_generic_user_object', 'signature_map', 'trackable_list_wrapper'})


def check(folder: pathlib.Path) -> None:
  """Refuses a SavedModel that could do more than compute odds.

  Args:
    folder: Folder of the SavedModel.

  Raises:
    PolicyMismatchError: the SavedModel has something that an exported policy
      does not have, or is too large.
    OSError: there is no SavedModel.
    google.protobuf.message.DecodeError: the SavedModel is damaged.
  """
  _check_files(folder)
  from tensorflow.core.protobuf import saved_model_pb2

  from gdp_grappler.graph.sources import inlining
  model = saved_model_pb2.SavedModel.FromString(
      files.read(folder / _FILE, _MAX_MODEL_BYTES))
  if len(model.meta_graphs) != 1:
    raise _refusal(folder, f'{len(model.meta_graphs)} graphs')
  graph, = model.meta_graphs
  # Without objects TensorFlow runs initializers, which may be any op.
  if not graph.object_graph_def.nodes or graph.asset_file_def:
    raise _refusal(folder, 'files of its own, or no objects')
  _check_objects(folder, graph.object_graph_def)
  why = inlining.objection(graph.graph_def)
  if why:
    raise _refusal(folder, f'unusable functions ({why})')
  _check_names(folder, graph.graph_def.library)
  for op in sorted(_run(graph) - OPS):
    raise _refusal(folder, f'the op {op}')


def sealed(folder: pathlib.Path, metadata: Mapping[str, Any]) -> dict[str, Any]:
  """The content of policy.json, with the digests that `check_whole` checks.

  Args:
    folder: Folder of the SavedModel.
    metadata: JSON that describes the policy.
  """
  return digests.sealed({**metadata, _DIGESTS: _file_digests(folder)})


def check_whole(folder: pathlib.Path, metadata: Mapping[str, Any]) -> None:
  """Refuses a policy whose files have changed since the export.

  Args:
    folder: A folder that `check` has passed.
    metadata: Content of its policy.json. Without digests, as in older policies,
      nothing is checked.

  Raises:
    PolicyMismatchError: a file has changed or is missing.
    OSError: a file cannot be read.
  """
  if digests.differs(metadata):
    raise _damaged(folder, 'policy.json')
  expected = metadata.get(_DIGESTS)
  if expected is None:
    return
  if not isinstance(expected, dict):
    raise _damaged(folder, 'policy.json')
  present = _file_digests(folder)
  for name in sorted({*expected, *present}):
    if expected.get(name) != present.get(name):
      raise _damaged(folder, name)


def _file_digests(folder: pathlib.Path) -> dict[str, str]:
  """SHA-256 digests of the files that loading reads, by relative path."""
  paths = [folder / _FILE, *sorted((folder / _WEIGHTS).glob('*'))]
  return {
      path.relative_to(folder).as_posix():
          hashlib.sha256(files.read(path, _MAX_WEIGHTS_BYTES)).hexdigest()
      for path in paths
  }


def _damaged(folder: pathlib.Path, name: str) -> errors.PolicyMismatchError:
  return errors.PolicyMismatchError(
      f'The policy in {folder} is damaged: {name} is not what '
      'gdp_train or gdp_pretrain wrote. Copy or export it again.')


def _check_files(folder: pathlib.Path) -> None:
  for path in folder.glob('saved_model.*'):
    if path.name != _FILE:  # TensorFlow would read this file in its place.
      raise _refusal(folder, path.name)
  sizes = {
      _MAX_MODEL_BYTES: [folder / _FILE],
      _MAX_WEIGHTS_BYTES: (folder / _WEIGHTS).glob('*'),
  }
  for limit, paths in sizes.items():
    total = 0
    for path in paths:
      if path.exists() and not path.is_file():
        raise _refusal(folder, f'{path.name}, which is not a file')
      total += path.stat().st_size
    if total > limit:
      raise _refusal(folder,
                     f'{total >> 20} MiB where {limit >> 20} are enough')


def _check_objects(folder: pathlib.Path, objects: Any) -> None:
  for node in objects.nodes:
    kind = node.WhichOneof('kind')
    if kind == 'user_object':
      kind = node.user_object.identifier
      if kind in _CONTAINERS:
        kind = None
    if node.registered_name or node.registered_saver:
      kind = node.registered_name or node.registered_saver
    elif kind is None or kind in _OBJECTS:
      _check_state(folder, node, len(objects.nodes))
      continue
    raise _refusal(folder, f'an object of the kind {kind}')


def _check_state(folder: pathlib.Path, node: Any, num_nodes: int) -> None:
  """Refuses an object whose restored state would call a function."""
  if node.saveable_objects or node.slot_variables:
    raise _refusal(folder, 'an object that restores itself')
  for child in node.children:
    name = child.local_name
    # A child is an attribute or an item of a list. TensorFlow may call an
    # attribute with a leading underscore. A list gets as many items as its
    # largest number.
    item = name.isascii() and name.isdigit() and len(name) < 10
    if not (int(name) < num_nodes
            if item else name.isidentifier() and not name.startswith('_')):
      raise _refusal(folder, f'an attribute {name!r:.60}')


def _check_names(folder: pathlib.Path, library: Any) -> None:
  """Refuses functions with the name of an op or of another function.

  TensorFlow's loader prefers functions to ops. So a node with an allowed op
  type would call a function of that name.
  """
  from tensorflow.python.framework import op_def_registry
  seen = set[str]()
  for function in library.function:
    name = function.signature.name
    if op_def_registry.get(name) is not None:
      raise _refusal(folder, f'a function named like the op {name}')
    if name in seen:
      raise _refusal(folder, f'the function {name} twice')
    seen.add(name)


def _run(graph: Any) -> set[str]:
  """Types of the ops in `place` and in all functions that `place` calls."""
  library = {f.signature.name: f for f in graph.graph_def.library.function}
  waiting, seen = list(_placing(graph.object_graph_def)), set[str]()
  ops = set[str]()
  while waiting:
    name = waiting.pop()
    if name in seen or name not in library:
      continue
    seen.add(name)
    for node in library[name].node_def:
      if node.op in library:  # A node may call a function by its name.
        waiting.append(node.op)
      else:
        ops.add(node.op)
      for value in node.attr.values():
        functions = [value.func, *value.list.func]
        waiting += [f.name for f in functions if f.name]
  return ops


def _placing(objects: Any) -> Iterator[str]:
  """Names of the functions behind the root's attribute `place`."""
  for child in objects.nodes[0].children:
    if child.local_name == 'place':
      node = objects.nodes[child.node_id]
      yield from node.function.concrete_functions
      if node.bare_concrete_function.concrete_function_name:
        yield node.bare_concrete_function.concrete_function_name


def _refusal(folder: pathlib.Path, what: str) -> errors.PolicyMismatchError:
  return errors.PolicyMismatchError(
      f'The policy in {folder} is not loaded: it contains {what}, which '
      'gdp_train and gdp_pretrain do not write, and a policy is a program. Use '
      'a folder "policy" that one of them wrote.')
