"""A graph of ops with prescribed times, and its GraphDef.

Node `op7` has the costs of op 7, but computes nothing. It waits for the same
tensors and control edges, takes the seconds of op 7 on its device, allocates
outputs and workspace of the same sizes, and keeps its parameters allocated. An
op that aliases passes on the memory of its first input. An op that does not run
in a step produces empty tensors. Nodes and inputs have the order of the graph,
because TensorFlow starts ready ops in the order in which they are listed. Only
inputs and outputs in the memory of the host come after those of the device.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np

from gdp_grappler.evaluation.costs import cost_model as cost_model_lib
from gdp_grappler.evaluation.emulation import machine as machine_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import start_order
from gdp_grappler.graph.control_flow import merges

_OP = 'GdpEmulatedOp'
# Values of the attribute `aliased_input` that are no inputs, see kernel.cc.
_NO_INPUT = -1
_NEW_MEMORY = -2
_PRODUCER = 1500  # A version of GraphDef that TensorFlow 2.21 accepts.


@dataclasses.dataclass(frozen=True, eq=False)
class EmulatedGraph:
  """N ops on a machine of D devices.

  Attributes:
    edges: int32 [E, 2], edges of the `OpGraph`, see `merges.live_first`.
    edge_tensors: int32 [E], see `OpGraph.edge_tensors`.
    read_on_host: bool [E], see `OpGraph.read_on_host`.
    tensor_ops: int32 [T], op that makes each tensor.
    tensor_bytes: int64 [T], size of each tensor in a step.
    made_on_host: bool [T], see `OpGraph.made_on_host`.
    param_bytes: int64 [N], parameters of each op, and constants.
    aliases: bool [N], whether an op passes on the memory of its first input or,
      without inputs, memory that it holds in all steps.
    seconds: float64 [N, D], seconds of each op in a step, in the cluster's
      order of devices.
    workspace_bytes: int64 [N, D], temporary memory of each op.
    launches: int64 [N, 3]. The columns are the runs of an op in a step, at
      least 1; the kernels that it launches in a step, if it launches any; and
      further work of the host, in thousandths of `Device.dispatch_s`.
  """

  edges: np.ndarray
  edge_tensors: np.ndarray
  read_on_host: np.ndarray
  tensor_ops: np.ndarray
  tensor_bytes: np.ndarray
  made_on_host: np.ndarray
  param_bytes: np.ndarray
  aliases: np.ndarray
  seconds: np.ndarray
  workspace_bytes: np.ndarray
  launches: np.ndarray

  @property
  def num_ops(self) -> int:
    """N."""
    return len(self.aliases)

  def sinks(self) -> list[str]:
    """Nodes without consumers; a step ends when they have ended."""
    has_consumer = np.zeros(self.num_ops, bool)
    has_consumer[self.edges[:, 0]] = True
    return [_name(op) for op in np.flatnonzero(~has_consumer).tolist()]


def of(graph: op_graph.OpGraph, cost_model: cost_model_lib.CostModel,
       machine: machine_lib.Machine) -> EmulatedGraph:
  """The emulated graph of a graph, with the costs that the simulator uses.

  Args:
    graph: N ops.
    cost_model: Seconds and workspace of each op.
    machine: Machine that will run the graph.
  """
  alive, order = graph.executions > 0, merges.live_first(graph)
  return EmulatedGraph(
      graph.edges[order], graph.edge_tensors[order], graph.read_on_host[order],
      graph.tensor_ops, graph.tensor_bytes * alive[graph.tensor_ops],
      graph.made_on_host, graph.resident_bytes,
      simulator_lib.aliases(graph) | graph.constants,
      cost_model.op_seconds(graph, machine.cluster),
      cost_model.workspace_bytes(graph, machine.cluster) * alive[:, None],
      np.column_stack([
          np.maximum(graph.executions, 1),
          np.rint(cost_model.launches(graph)),
          np.rint(1000 * cost_model.host_work(graph))
      ]).astype(np.int64))


def node_defs(graph: EmulatedGraph) -> Any:
  """A GraphDef without devices."""
  from tensorflow.core.framework import graph_pb2
  result = graph_pb2.GraphDef()
  result.versions.producer = _PRODUCER
  outputs, sizes = _output_numbers(graph)
  data, on_host, control = _inputs(graph, outputs)
  aliased = _aliased_inputs(graph, data)
  host_outputs = np.bincount(graph.tensor_ops[graph.made_on_host],
                             minlength=graph.num_ops).tolist()
  for op, params in enumerate(graph.param_bytes.tolist()):
    node = result.node.add(name=_name(op), op=_OP)
    node.input.extend(data[op] + on_host[op])
    node.input.extend(dict.fromkeys(control[op]))
    node.attr['num_inputs'].i = len(data[op])
    node.attr['num_host_inputs'].i = len(on_host[op])
    node.attr['num_outputs'].i = len(sizes[op]) - host_outputs[op]
    node.attr['num_host_outputs'].i = host_outputs[op]
    node.attr['op'].i = op
    node.attr['aliased_input'].i = aliased[op]
    node.attr['parameter_bytes'].i = params
    node.attr['output_bytes'].list.i.extend(sizes[op])
  return result


def placed(template: Any, devices: np.ndarray, device_names: Sequence[str],
           control_edges: np.ndarray) -> Any:
  """A copy of a GraphDef with devices, control edges and an order of starts.

  Args:
    template: Result of `node_defs`.
    devices: int [N].
    device_names: [D]
    control_edges: int [C, 2]; the second op waits for the first.
  """
  result = type(template)()
  result.CopyFrom(template)
  for node, device in zip(result.node, devices.tolist()):
    node.device = device_names[device]
  for first, second in control_edges.tolist():
    control = _control(first)
    if control not in result.node[second].input:
      result.node[second].input.append(control)
  return start_order.fix(result)


def _name(op: int) -> str:
  return f'op{op}'


def _control(op: int) -> str:
  return f'^{_name(op)}'


def _output_numbers(graph: EmulatedGraph) -> tuple[list[int], list[list[int]]]:
  """Numbers of tensors among the outputs of their op, and sizes of outputs.

  The outputs of a device come before those of its host.

  Returns:
    [T], and a list for each of the N ops.
  """
  numbers = [0] * len(graph.tensor_ops)
  sizes: list[list[int]] = [[] for _ in range(graph.num_ops)]
  for tensor in np.argsort(graph.made_on_host, kind='stable').tolist():
    own = sizes[graph.tensor_ops[tensor]]
    numbers[tensor] = len(own)
    own.append(int(graph.tensor_bytes[tensor]))
  return numbers, sizes


def _inputs(
    graph: EmulatedGraph, outputs: list[int]
) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
  """Names of inputs on the device, on its host and of control inputs, [N]."""
  data: list[list[str]] = [[] for _ in range(graph.num_ops)]
  on_host: list[list[str]] = [[] for _ in range(graph.num_ops)]
  control: list[list[str]] = [[] for _ in range(graph.num_ops)]
  for (source, target), tensor, host in zip(graph.edges.tolist(),
                                            graph.edge_tensors.tolist(),
                                            graph.read_on_host.tolist()):
    if tensor < 0:
      control[target].append(_control(source))
    else:
      inputs = on_host if host else data
      inputs[target].append(f'{_name(source)}:{outputs[tensor]}')
  return data, on_host, control


def _aliased_inputs(graph: EmulatedGraph, data: list[list[str]]) -> list[int]:
  """[N], the attribute `aliased_input` of each op, see kernel.cc."""
  edges = np.flatnonzero(graph.edge_tensors >= 0)
  readers, first = np.unique(graph.edges[edges, 1], return_index=True)
  on_host = dict(
      zip(readers.tolist(), graph.read_on_host[edges[first]].tolist()))
  result = [_NEW_MEMORY] * graph.num_ops
  for op in np.flatnonzero(graph.aliases).tolist():
    if op not in on_host:
      result[op] = _NO_INPUT
    else:
      result[op] = len(data[op]) if on_host[op] else 0
  return result
