"""The nodes inside of a call: a function's body, or a lowered loop."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.framework import tensor_util

from gdp_grappler.graph import node_attributes


class Bodies:
  """Makes the nodes of calls of the functions of one library."""

  def __init__(self, functions: Mapping[str, function_pb2.FunctionDef]) -> None:
    """Keeps functions by name."""
    self._functions = functions

  def body(
      self, name: str,
      arguments: Sequence[node_def_pb2.NodeDef]) -> list[node_def_pb2.NodeDef]:
    """Returns the nodes of a function, with its arguments and results."""
    sources = _named(arguments, self._functions[name].signature)
    nodes, returned, types = self._instance(name, 'call/',
                                            [node.name for node in sources])
    return [*sources, *nodes, *_returns(returned, types)]

  def loop(
      self, name: str, cond: str, body: str,
      arguments: Sequence[node_def_pb2.NodeDef]) -> list[node_def_pb2.NodeDef]:
    """Returns a lowered loop: Enter, Merge, Switch, NextIteration, Exit."""
    signature = self._functions[body].signature
    sources = _named(arguments, signature)
    returned = self._functions[body].ret
    same = [
        returned[out.name] == arg.name
        for arg, out in zip(signature.input_arg, signature.output_arg)
    ]
    nodes, firsts, seconds = [], [], []
    for k, (source, arg, constant) in enumerate(
        zip(sources, signature.input_arg, same, strict=True)):
      enter = _node(f'loop/enter_{k}', 'Enter', [source.name], arg.type)
      enter.attr['frame_name'].s = name.encode()
      enter.attr['is_constant'].b = constant
      enter.attr['parallel_iterations'].i = 10
      nodes.append(enter)
      if constant:
        firsts.append(enter.name)
        seconds.append(enter.name)
        continue
      merge = _node(f'loop/merge_{k}', 'Merge', [enter.name, f'loop/next_{k}'],
                    arg.type)
      merge.attr['N'].i = 2
      switch = _node(f'loop/switch_{k}', 'Switch', [merge.name, 'loop/cond'],
                     arg.type)
      nodes += [merge, switch]
      firsts.append(merge.name)
      seconds.append(f'{switch.name}:1')
    varying = [k for k, constant in enumerate(same) if not constant]
    if not varying:
      raise ValueError('no variable of the loop ever changes')
    pivots = [f'loop/merge_{varying[0]}', 'loop/pivot']
    tests, (decision, *_), _ = self._instance(cond, 'cond/', firsts, pivots[0])
    nodes += tests
    nodes.append(
        node_def_pb2.NodeDef(name='loop/cond', op='LoopCond', input=[decision]))
    nodes.append(
        _node(pivots[1], 'Identity', [seconds[varying[0]]],
              signature.input_arg[varying[0]].type))
    steps, results, types = self._instance(body, 'body/', seconds, pivots[1])
    nodes += steps
    ends = [sources[k].name for k in range(len(same))]
    for k in varying:
      nodes.append(
          _node(f'loop/next_{k}', 'NextIteration', [results[k]], types[k]))
      nodes.append(
          _node(f'loop/exit_{k}', 'Exit', [f'loop/switch_{k}'], types[k]))
      ends[k] = f'loop/exit_{k}'
    return [*sources, *nodes, *_returns(ends, types)]

  def _instance(
      self, name: str, prefix: str, inputs: Sequence[str],
      pivot: str | None = None
  ) -> tuple[list[node_def_pb2.NodeDef], list[str], list[int]]:
    """Returns a body's nodes, the tensors that it returns, and their types.

    Args:
      name: Name of the function.
      prefix: Prefix of the names of the nodes.
      inputs: Tensors of the surrounding graph that are the arguments.
      pivot: Control input of nodes without inputs, so that they run in the
        loop.
    """
    function = self._functions[name]
    tensors = self._tensors(function, prefix)
    nodes = [
        _node(prefix + arg.name, 'Identity',
              [tensor], arg.type) for arg, tensor in zip(
                  function.signature.input_arg, inputs, strict=True)
    ]
    for node in function.node_def:
      copy = node_def_pb2.NodeDef()
      copy.CopyFrom(node)
      copy.name, copy.device = prefix + node.name, ''
      copy.attr.pop('_class', None)
      copy.input[:] = [
          f'^{prefix}{text[1:]}' if text.startswith('^') else tensors[text]
          for text in node.input
      ]
      if node.op in self._functions and len(function.node_def) == 1:
        # TensorFlow 1 wraps the functions of a loop, and the wrapper hides the
        # counter.
        steps, returned, _ = self._instance(node.op, f'{copy.name}/',
                                            copy.input, pivot)
        nodes += steps
        tensors.update(zip(self._outputs(node), returned))
        continue
      if pivot and not copy.input:
        copy.input.append(f'^{pivot}')
      nodes.append(copy)
    outputs = function.signature.output_arg
    return (nodes, [tensors[function.ret[out.name]] for out in outputs],
            [out.type for out in outputs])

  def _tensors(self, function: function_pb2.FunctionDef,
               prefix: str) -> dict[str, str]:
    """Returns names of tensors in the body, by their names in the function."""
    result = {
        arg.name: prefix + arg.name for arg in function.signature.input_arg
    }
    for node in function.node_def:
      result.update((name, f'{prefix}{node.name}:{k}')
                    for k, name in enumerate(self._outputs(node)))
    return result

  def _outputs(self, node: node_def_pb2.NodeDef) -> list[str]:
    """Returns a node's outputs as functions name them: 'split:output:1'."""
    called = self._functions.get(node.op)
    definition = called.signature if called else op_def_registry.get(node.op)
    if definition is None:
      raise ValueError(f'TensorFlow does not know the op "{node.op}"')
    return [
        f'{node.name}:{arg.name}:{k}' for arg in definition.output_arg
        for k in range(_count(arg, node))
    ]


def _count(argument: op_def_pb2.OpDef.ArgDef,
           node: node_def_pb2.NodeDef) -> int:
  """Returns how many tensors an output argument of a node has."""
  if argument.type_list_attr:
    return len(node_attributes.of(node, argument.type_list_attr).list.type)
  return (node_attributes.of(node, argument.number_attr).i
          if argument.number_attr else 1)


def _named(arguments: Sequence[node_def_pb2.NodeDef],
           signature: Any) -> list[node_def_pb2.NodeDef]:
  result = []
  for k, (argument, declared) in enumerate(
      zip(arguments, signature.input_arg, strict=True)):
    node = node_def_pb2.NodeDef()
    node.CopyFrom(argument)
    node.name = f'argument_{k}'
    if node.op == '_Arg':
      node.attr['index'].i = k
      node.attr['T'].type = declared.type
    elif 'dtype' not in node.attr:
      value = tensor_util.MakeNdarray(node.attr['value'].tensor)
      node.attr['dtype'].type = declared.type
      node.attr['value'].tensor.CopyFrom(
          tensor_util.make_tensor_proto(value, declared.type))
    result.append(node)
  return result


def _returns(tensors: Sequence[str],
             types: Sequence[int]) -> list[node_def_pb2.NodeDef]:
  result = []
  for k, (tensor, dtype) in enumerate(zip(tensors, types)):
    node = _node(f'return_{k}', '_Retval', [tensor], dtype)
    node.attr['index'].i = k
    result.append(node)
  return result


def _node(name: str, op: str, inputs: Sequence[str],
          dtype: int) -> node_def_pb2.NodeDef:
  result = node_def_pb2.NodeDef(name=name, op=op, input=inputs)
  result.attr['T'].type = dtype
  return result
