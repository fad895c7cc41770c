"""Ops that stay on the device they have, and the reasons."""

from __future__ import annotations

import functools
import re

from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.legality import node_types

# Node attributes that `gdp_grappler.pin` and `gdp_grappler.leave_alone` set.
PIN_ATTRIBUTE = '_gdp_pin'
LEAVE_ALONE_ATTRIBUTE = '_gdp_leave_alone'
# Device requested by `tf.device`, written before placement; see `asked`.
ASKED_ATTRIBUTE = '_gdp_asked'
# A variable that is on the host only because a card had no room for it.
WAITS_ATTRIBUTE = '_gdp_waits_on_host'

_HOST = 'CPU:0'
_EXCHANGES = 'it exchanges values with the caller or with other devices'
_PIPELINE = 'it belongs to the input pipeline'
_CALLS = 'it calls a function, which is not divided'
# Ops that exchange data with the caller or other devices, or have state that is
# found by name and device, not through an edge; each with the text of the
# reason.
_STAY = tuple((reason, re.compile(pattern)) for reason, pattern in (
    (_EXCHANGES, r'_?(Device|Host)?(Arg|Retval|Send|Recv|SendTPU.*|RecvTPU.*)$'
     r'|Infeed.*|Outfeed.*|Placeholder(V2|WithDefault)?'),
    (_PIPELINE, r'.*Dataset.*|.*Iterator.*|Optional.*'),
    ('it runs Python', r'.*PyFunc.*'),
    ('it is a collective operation', r'Collective.*|.*Nccl.*'),
    ('it belongs to XLA or a TPU', r'Xla.*|_Xla.*|TPU.*'),
    (_CALLS, r'(Stateful)?PartitionedCall|RemoteCall|SymbolicGradient'
     r'|(Stateless)?(If|While|Case)|For'),
))
# Ops whose state is in a variable, tensor array or stack that is the op's
# input, or is a stream of random numbers.
_MOVABLE_STATE = re.compile(
    r'Resource.*|.*VariableOp|VarHandleOp|_?VarHandlesOp|Variable(V2)?'
    r'|VarIsInitializedOp|TemporaryVariable|DestroyTemporaryVariable'
    r'|Random.*|TruncatedNormal|ParameterizedTruncatedNormal|Multinomial'
    r'|TensorArray.*|Stack.*|ReadVariablesOp|StatefulRandom.*'
    r'|StatefulUniform.*|StatefulStandardNormal.*|StatefulTruncatedNormal'
    r'|NonDeterministicInts|VariableShape')
_STREAM = re.compile(
    r'Random.*|TruncatedNormal|ParameterizedTruncatedNormal|Multinomial'
    r'|NonDeterministicInts')
# Ops whose only state is that of their dropout. Their gradients may move with
# them (`colocation.gradients_with_layers`).
_CUDNN = re.compile(r'CudnnRNN(V[23])?')
_NAMED_STATE = 'it has state that is found by name and device'
_XLA_ATTRIBUTES = ('_XlaMustCompile', '_XlaCompile', '_tpu_replicate')
_CHANNELS_FIRST = (b'NCHW', b'NCDHW', b'NCHW_VECT_C')


def device_pin(node: node_def_pb2.NodeDef,
               signature: node_types.Signature) -> tuple[str, bool]:
  """Returns a node's pin, and whether a user asked for it.

  The pin is '' if the node is free, or if its group decides (`by_default`).

  Args:
    node: A node.
    signature: Types of its inputs and outputs.
  """
  if PIN_ATTRIBUTE in node.attr:
    return node.attr[PIN_ATTRIBUTE].s.decode(errors='replace'), True
  if LEAVE_ALONE_ATTRIBUTE in node.attr or stays(node, signature):
    if by_default(node, signature):
      return '', False
    if node.device and task_of(node.device) != node.device:
      return node.device, False
    return host_of(node.device), False
  if ASKED_ATTRIBUTE in node.attr:
    return node.attr[ASKED_ATTRIBUTE].s.decode(errors='replace'), True
  return '', False


def by_default(node: node_def_pb2.NodeDef,
               signature: node_types.Signature) -> bool:
  """Whether TensorFlow's placer chooses the device of a node that stays.

  The placer chooses if the node names no device, or only a task. Values of the
  caller, the input pipeline and strings are on the host, so the placer has no
  choice for them. A resource of the caller may be on any device.
  """
  tie = _ties(node.op)
  on_host = (tie == _PIPELINE or _has(signature, types_pb2.DT_STRING) or
             tie == _EXCHANGES and not _has(signature, types_pb2.DT_RESOURCE))
  placed = task_of(node.device) != node.device
  return not placed and not on_host and (LEAVE_ALONE_ATTRIBUTE in node.attr or
                                         stays(node, signature))


def task_of(device: str) -> str:
  """Returns '/job:worker/task:1' of '/job:worker/task:1/device:GPU:0'.

  Args:
    device: A name as TensorFlow writes it, perhaps only that of a task, or ''.
  """
  task, _, last = device.rpartition('/')
  is_device = last.lower().startswith(('device:', 'cpu:', 'gpu:'))
  return task if is_device else device


def host_of(device: str) -> str:
  """Returns the name of the CPU in the task of a device.

  Args:
    device: See `task_of`.
  """
  task = task_of(device)
  return f'{task}/device:{_HOST}' if task else _HOST


def has_wish(node: node_def_pb2.NodeDef) -> bool:
  """Whether a user pinned a node or wants it left alone."""
  return PIN_ATTRIBUTE in node.attr or LEAVE_ALONE_ATTRIBUTE in node.attr


def stays(node: node_def_pb2.NodeDef, signature: node_types.Signature) -> bool:
  """Whether a node has to stay on its device because of its type or state."""
  return bool(why_it_stays(node, signature))


def why_it_stays(node: node_def_pb2.NodeDef,
                 signature: node_types.Signature) -> str:
  """Returns why a node has to stay: 'it runs Python'; '' if it may move."""
  by_type = _ties(node.op)
  if by_type:
    return '' if is_variable_argument(node) else by_type
  by_kind = _ties_of_kind(node.op, signature)
  if by_kind == _NAMED_STATE and _CUDNN.fullmatch(node.op):
    # An attribute that is only read must not be added to the node.
    drops = 'dropout' in node.attr and node.attr['dropout'].f > 0
    by_kind = 'its dropout is random' if drops else ''
  if not by_kind and any(name in node.attr for name in _XLA_ATTRIBUTES):
    return 'XLA compiles it'
  return by_kind


@functools.cache
def _ties_of_kind(op_type: str, signature: node_types.Signature) -> str:
  """Returns why nodes of a type and signature stay; '' if they may move."""
  definition = kernels.op_def(op_type)
  if definition is None:  # Its type is the name of a function.
    return _CALLS
  if _has(signature, types_pb2.DT_STRING):
    return 'strings are handled by the host only'
  # The body of the function, and the devices that could run it, are not
  # examined.
  if any(attr.type == 'func' for attr in definition.attr):
    return _CALLS
  if definition.is_stateful and not _MOVABLE_STATE.fullmatch(op_type):
    return _NAMED_STATE
  return ''


def _has(signature: node_types.Signature, dtype: int) -> bool:
  return any(
      arg.dtype == dtype for arg in (*signature.inputs, *signature.outputs))


@functools.cache
def _ties(op_type: str) -> str:
  return next(
      (reason for reason, pattern in _STAY if pattern.fullmatch(op_type)), '')


def holds_state(node: node_def_pb2.NodeDef,
                signature: node_types.Signature) -> bool:
  """Whether a node outputs a variable, or other state that outlives a step.

  All ops that use the state are in the node's group.
  """
  return (not signature.inputs and node.op not in op_kinds.STEP_STATE and
          any(arg.is_ref or arg.dtype == types_pb2.DT_RESOURCE
              for arg in signature.outputs))


def draws_from_a_stream(node: node_def_pb2.NodeDef) -> bool:
  """Whether a node's random numbers depend on how often it has run.

  A v1 session keeps such a kernel for all its graphs. On another device the
  stream would begin again.
  """
  return _kind_draws(node.op)


@functools.cache
def _kind_draws(op_type: str) -> bool:
  definition = kernels.op_def(op_type)
  return (definition is not None and definition.is_stateful and
          _STREAM.fullmatch(op_type) is not None)


def is_variable_argument(node: node_def_pb2.NodeDef) -> bool:
  """Whether a node is an argument that is the handle of a variable."""
  return (node.op in op_kinds.ARGUMENTS and
          node.attr['T'].type == types_pb2.DT_RESOURCE and
          '_handle_dtypes' in node.attr and
          list(node.attr['_handle_dtypes'].list.type)
          not in ([], [types_pb2.DT_INVALID]))


def keeps_type(node: node_def_pb2.NodeDef) -> bool:
  """Whether a placed node works only on its present type of device.

  Grappler chooses fused ops and layouts for one device type, but the kernel
  registry does not say so. The argument of a variable is only a handle, and
  goes wherever the variable may go.
  """
  if node.op.startswith('_'):
    return not is_variable_argument(node)
  return ('data_format' in node.attr and
          node.attr['data_format'].s in _CHANNELS_FIRST)
