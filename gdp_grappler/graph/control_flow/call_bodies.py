"""The nodes inside of a call: a function's body, or a lowered loop."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import function_def_to_graph
from tensorflow.python.framework import tensor_util


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
    function = self._with_plain_calls(self._functions[name])
    graph_def, tensors = function_def_to_graph.function_def_to_graph_def(
        function)
    arguments = {
        arg.name: (arg.type, tensor) for arg, tensor in zip(
            function.signature.input_arg, inputs, strict=True)
    }
    nodes = []
    for node in graph_def.node:
      if node.name in arguments:
        dtype, tensor = arguments[node.name]
        nodes.append(_node(prefix + node.name, 'Identity', [tensor], dtype))
        continue
      copy = node_def_pb2.NodeDef()
      copy.CopyFrom(node)
      copy.name, copy.device = prefix + node.name, ''
      copy.attr.pop('_class', None)
      del copy.input[:]
      copy.input.extend(
          f'^{prefix}{text[1:]}' if text.startswith('^') else prefix + text
          for text in node.input)
      if pivot and not copy.input:
        copy.input.append(f'^{pivot}')
      nodes.append(copy)
    outputs = function.signature.output_arg
    return (nodes,
            [prefix + tensors[function.ret[out.name]] for out in outputs
            ], [out.type for out in outputs])

  def _with_plain_calls(
      self, function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
    """Replaces ops named after functions by PartitionedCalls.

    TensorFlow knows an op named after a function only if the function is
    registered.
    """
    result, renamed = type(function)(), {}
    result.CopyFrom(function)
    for node in result.node_def:
      if node.op not in self._functions:
        continue
      callee = self._functions[node.op].signature
      for k, output in enumerate(callee.output_arg):
        renamed[f'{node.name}:{output.name}:0'] = f'{node.name}:output:{k}'
      node.attr['f'].func.name = node.op
      node.attr['Tin'].list.type.extend(a.type for a in callee.input_arg)
      node.attr['Tout'].list.type.extend(a.type for a in callee.output_arg)
      node.op = 'PartitionedCall'
    for node in result.node_def:
      node.input[:] = [renamed.get(text, text) for text in node.input]
    for key, text in list(result.ret.items()):
      result.ret[key] = renamed.get(text, text)
    return result


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
