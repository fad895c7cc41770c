"""Keeps float ops on their type of device, as CPUs and GPUs round differently.

A placement must not change what a program computes. `rounding_kinds` says which
types of ops compute the same numbers on both types of device. This module
decides for a node, from its input and output types, whether it rounds. For each
op of a graph it decides which type of device gives the numbers of the unplaced
program.
"""

from __future__ import annotations

import functools
from typing import Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import rounding_kinds
from gdp_grappler.graph.legality import colocation
from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.legality import node_types
from gdp_grappler.graph.legality import pins as pins_lib

_CPU, _GPU = map(op_graph.DEVICE_TYPES.index, ('CPU', 'GPU'))
_UNKNOWN = 'it computes with floats, and its rounding was not examined'

# Number of bits up to which a type represents every integer exactly.
_DIGITS = {
    types_pb2.DT_HALF: 11,
    types_pb2.DT_BFLOAT16: 8,
    types_pb2.DT_FLOAT: 24,
    types_pb2.DT_DOUBLE: 53,
    types_pb2.DT_COMPLEX64: 24,
    types_pb2.DT_COMPLEX128: 53,
}
# Number of bits of an integer type, without the sign.
_WHOLE_BITS = {
    types_pb2.DT_BOOL: 1,
    types_pb2.DT_INT8: 7,
    types_pb2.DT_UINT8: 8,
    types_pb2.DT_INT16: 15,
    types_pb2.DT_UINT16: 16,
    types_pb2.DT_INT32: 31,
    types_pb2.DT_UINT32: 32,
    types_pb2.DT_INT64: 63,
    types_pb2.DT_UINT64: 64,
}
# Types whose values are not floats. A resource is only a handle.
_WITHOUT_FLOATS = frozenset(_WHOLE_BITS) | {
    types_pb2.DT_INT4, types_pb2.DT_UINT4, types_pb2.DT_STRING,
    types_pb2.DT_RESOURCE
}
# Float types, each with the types that contain all its values.
_WIDER = {
    types_pb2.DT_HALF: (types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE),
    types_pb2.DT_FLOAT: (types_pb2.DT_DOUBLE,),
    types_pb2.DT_BFLOAT16: (types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE),
}


def why_it_rounds(node: node_def_pb2.NodeDef) -> str:
  """Returns why a node rounds: 'it multiplies matrices'; '' if it does not.

  Args:
    node: A node.
  """
  signature = node_types.signature(node)
  why = _why(node.op, signature)
  if why and not _has_floats(signature) and kernels.works_on_host(node):
    return ''
  return why


@functools.cache
def _why(op_type: str, signature: node_types.Signature) -> str:
  if op_type in _exact():
    return ''
  why = _rounds().get(op_type, _UNKNOWN)
  if op_type in rounding_kinds.ALSO_INTEGERS:
    return why
  if op_type in rounding_kinds.CASTS and is_exact_cast(*_types(signature)):
    return ''
  return why if _has_floats(signature) else ''


def _has_floats(signature: node_types.Signature) -> bool:
  # A node with variants may round, because a variant may be a list of floats.
  return not _WITHOUT_FLOATS.issuperset(_types(signature))


def _types(signature: node_types.Signature) -> list[int]:
  return [arg.dtype for arg in (*signature.inputs, *signature.outputs)]


def is_exact_cast(source: int, target: int) -> bool:
  """Whether a type contains all values of another type, so no cast rounds.

  Args:
    source: DataType of the values.
    target: DataType that they are cast to.
  """
  if source == target or source in _WHOLE_BITS and target in _WHOLE_BITS:
    return True
  if source in _WHOLE_BITS:
    return _WHOLE_BITS[source] <= _DIGITS.get(target, 0)
  return target in _WIDER.get(source, ())


@functools.cache
def _exact() -> frozenset[str]:
  return frozenset().union(*rounding_kinds.EXACT.values())


@functools.cache
def _rounds() -> dict[str, str]:
  return {
      op_type: why for why, types in rounding_kinds.ROUNDS.items()
      for op_type in types
  }


def same_numbers(table: node_table.NodeTable, groups: np.ndarray,
                 allowed_types: np.ndarray, pins: Sequence[str],
                 devices: Sequence[str]) -> np.ndarray:
  """Marks device types where ops compute the unplaced program's numbers [N, 2].

  If the program has GPUs, an op's own device type gives these numbers.
  Otherwise the graph was made for GPUs of another machine. Then TensorFlow's
  default counts: an op that can be on a GPU is there. If a variable is on the
  host only because a card had no room for it, the variable and all ops on it
  may stay there or go to a GPU. A lookup in a variable that has to be on the
  host may go there: otherwise the whole table would be sent in each step.

  Args:
    table: N nodes.
    groups: int [N], groups of ops that share a device.
    allowed_types: bool [N, 2], whether there is a kernel.
    pins: [N], devices that ops have to be on, or ''.
    devices: Devices of the program; empty if unknown.
  """
  on_gpu = _can_be_on_gpu(groups, allowed_types, pins)
  own = np.array(table.of_kinds(lambda node: device_type(node.device)))
  if _GPU in (*map(device_type, devices), *own.tolist()):
    known = own[table.kinds]
    on_gpu = np.where(known >= 0, known == _GPU, on_gpu)
  exact = ~table.flags(lambda node: bool(why_it_rounds(node)))
  waits = table.flags(lambda node: pins_lib.WAITS_ATTRIBUTE in node.attr)
  exact |= (np.bincount(groups, waits) > 0)[groups]
  exact |= _looks_up_on_host(table, groups, pins)
  result = np.empty((len(groups), len(op_graph.DEVICE_TYPES)), bool)
  result[:, _GPU], result[:, _CPU] = on_gpu | exact, ~on_gpu | exact
  return result


def _looks_up_on_host(table: node_table.NodeTable, groups: np.ndarray,
                      pins: Sequence[str]) -> np.ndarray:
  """Marks lookups in variables that have to be on the host, bool [N]."""
  result = np.zeros(len(groups), bool)
  lookups = table.flags(lambda node: node.op in rounding_kinds.LOOKUPS)
  if not lookups.any():
    return result
  on_host = np.array([device_type(pin) == _CPU for pin in pins], bool)
  on_host = (np.bincount(groups, on_host) > 0)[groups]
  on_host &= table.flags(lambda node: node.op in op_kinds.VARIABLE_VALUES)
  edges = np.asarray(table.edges, np.int64).reshape(-1, 3)
  first = (edges[:, 1] >= 0) & (colocation.input_places(edges) == 0)
  result[edges[first & on_host[edges[:, 0]], 2]] = True
  return result & lookups


def _can_be_on_gpu(groups: np.ndarray, allowed_types: np.ndarray,
                   pins: Sequence[str]) -> np.ndarray:
  """Marks ops whose group may be on a GPU, bool [N]."""
  types = {pin: device_type(pin) for pin in set(pins)}
  kept = np.array([types[pin] == _CPU for pin in pins], bool)
  kept |= ~allowed_types[:, _GPU]
  return (np.bincount(groups, kept) == 0)[groups]


@functools.cache
def device_type(device: str) -> int:
  """Returns a device's index in `op_graph.DEVICE_TYPES`; -1 for other types.

  Args:
    device: A name as TensorFlow writes it, or short: 'GPU:1', '/gpu:1'.
  """
  name = device.rsplit('/', 1)[-1]
  kind = name.rpartition('device:')[2].split(':')[0].upper()
  kinds = op_graph.DEVICE_TYPES
  return kinds.index(kind) if kind in kinds else -1
