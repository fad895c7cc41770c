"""Ops between which a control edge may be added without any other effect.

A control edge only delays its target if both ops certainly run, and run once.
So these ops get no control edges:

* ops in a while loop, because TensorFlow does not let control edges cross the
  border of a frame;
* ops after a Switch whose branches have not met again in a Merge, because an op
  that does not run would keep the other one from running;
* stateful ops, because their order is the user's;
* ops after one that may wait for other ops of the step (a queue that is full or
  empty, a receive, a collective, a Python function), because waiting for its
  result may never end.
"""

from __future__ import annotations

import re
from typing import Sequence

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import union_find

_NO_ENDS = (op_kinds.CONTROL_FLOW | op_kinds.PLACEHOLDERS | op_kinds.ARGUMENTS
            | op_kinds.RETURNS | {'Const'})
_WAITS = re.compile(
    r'.*(Enqueue|Dequeue|ReaderRead|Stage|Unstage|MapPeek|Barrier|Recv|'
    r'Collective|Nccl|AccumulatorTake|TakeGradient|MutexLock|PyFunc).*')
# Conditions for an op to run: pairs of a condition and its outcome.
_Needs = frozenset[tuple[int, int]]


def orderable(graph: op_graph.OpGraph) -> np.ndarray:
  """Marks ops that may be source or target of new control edges, bool [N]."""
  ends = np.array([t not in _NO_ENDS for t in graph.op_types], bool)
  waiting = {t for t in set(graph.op_types) if _WAITS.fullmatch(t)}
  return (ends & ~graph.stateful & (graph.executions == 1) &
          (_depths(graph) == 0)
          & _always_runs(graph)
          & ~_dependents(graph, [t in waiting for t in graph.op_types]))


def loop_barriers(graph: op_graph.OpGraph) -> np.ndarray:
  """Returns edges from Enters to Exits of outermost loops, int32 [B, 2].

  Each Enter has an edge to each Exit of its loop. An `OpGraph` lacks the edges
  from one iteration to the next. The barriers replace them: they make all ops
  after a loop depend on all inputs of the loop.
  """
  depths = _depths(graph)
  inside = depths > 0
  types = np.array(graph.op_types, object)
  leaves = np.isin(types, tuple(op_kinds.EXITS)) & (depths == 1)
  frames = union_find.UnionFind(graph.num_ops)
  for source, target in graph.edges[inside[graph.edges].all(axis=1)].tolist():
    if not leaves[source]:
      frames.join(source, target)
  ends: dict[int, tuple[list[int], list[int]]] = {}
  for column, ops in enumerate(
      (np.isin(types, tuple(op_kinds.ENTERS)) & (depths == 1), leaves)):
    for op in np.flatnonzero(ops).tolist():
      ends.setdefault(frames.find(op), ([], []))[column].append(op)
  return np.array([(enter, leave) for enters, exits in ends.values()
                   for enter in enters
                   for leave in exits], np.int32).reshape(-1, 2)


def _depths(graph: op_graph.OpGraph) -> np.ndarray:
  """Returns the number of while frames around each op, int [N].

  Enter and Exit are in their frame.
  """
  if not any(t in op_kinds.ENTERS for t in graph.op_types):
    return np.zeros(graph.num_ops, int)
  producers, _ = _inputs(graph)
  depths = [0] * graph.num_ops
  for op in graph.topological_order.tolist():
    depths[op] = (graph.op_types[op] in op_kinds.ENTERS) + max(
        (depths[p] - (graph.op_types[p] in op_kinds.EXITS)
         for p in producers[op]), default=0)
  return np.array(depths)


def _always_runs(graph: op_graph.OpGraph) -> np.ndarray:
  """Marks ops that run for all outcomes of conditions, bool [N]."""
  if not any('Switch' in t for t in graph.op_types):
    return np.ones(graph.num_ops, bool)
  producers, tensors = _inputs(graph)
  first = np.full(graph.num_ops, len(graph.tensor_ops))
  np.minimum.at(first, graph.tensor_ops, np.arange(len(graph.tensor_ops)))
  # None for ops whose conditions are too complex.
  needs: list[_Needs | None] = [None] * graph.num_ops
  for op in graph.topological_order.tolist():
    incoming = [
        _output_conditions(graph, p, t - first[p], needs, producers, tensors)
        for p, t in zip(producers[op], tensors[op])
    ]
    needs[op] = (_merged(incoming) if graph.op_types[op] in op_kinds.MERGES else
                 _all_of(incoming))
  return np.array([need is not None and not need for need in needs], bool)


def _output_conditions(graph: op_graph.OpGraph, op: int, output: int,
                       needs: Sequence[_Needs | None],
                       producers: Sequence[Sequence[int]],
                       tensors: Sequence[Sequence[int]]) -> _Needs | None:
  """Returns the conditions for an op to produce an output."""
  if graph.op_types[op] == '_SwitchN':
    return None
  own = needs[op]
  if own is None or output < 0 or graph.op_types[op] not in op_kinds.SWITCHES:
    return own
  data = [(p, t) for p, t in zip(producers[op], tensors[op]) if t >= 0]
  condition, tensor = data[-1]
  if graph.op_types[condition] == 'LoopCond':
    return own  # A loop ends, so its Exits run.
  return own | {(tensor, output)}


def _all_of(incoming: Sequence[_Needs | None]) -> _Needs | None:
  """Joins conditions: an op runs if all its inputs arrive."""
  known = [need for need in incoming if need is not None]
  return _Needs().union(*known) if len(known) == len(incoming) else None


def _merged(incoming: Sequence[_Needs | None]) -> _Needs | None:
  """Returns conditions of a Merge, which runs if one input arrives."""
  known = [need for need in incoming if need is not None]
  if len(known) < len(incoming):
    return None
  if len(known) == 2:
    differ = known[0] ^ known[1]
    if len({condition for condition, _ in differ}) == 1 and len(differ) == 2:
      return known[0] & known[1]
  return known[0] if len(set(known)) == 1 else None


def _dependents(graph: op_graph.OpGraph, starts: Sequence[bool]) -> np.ndarray:
  """Marks the given ops and all ops that depend on them, bool [N]."""
  marked = list(starts)
  if any(marked):
    consumers, begins = graph.successors
    for op in graph.topological_order.tolist():
      if marked[op]:
        for target in consumers[begins[op]:begins[op + 1]]:
          marked[target] = True
  return np.array(marked, bool)


def _inputs(graph: op_graph.OpGraph) -> tuple[list[list[int]], list[list[int]]]:
  """Returns the producers and tensors of each op's inputs, in their order."""
  producers: list[list[int]] = [[] for _ in range(graph.num_ops)]
  tensors: list[list[int]] = [[] for _ in range(graph.num_ops)]
  for (source, target), tensor in zip(graph.edges.tolist(),
                                      graph.edge_tensors.tolist()):
    producers[target].append(source)
    tensors[target].append(tensor)
  return producers, tensors
