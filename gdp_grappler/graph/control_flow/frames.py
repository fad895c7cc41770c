"""Executions of each op in a step, by while loops and conditions.

Grappler and v1 graphs express both with a few types of ops (Yu et al., "Dynamic
Control Flow in Large-Scale Machine Learning", EuroSys 2018, section 4.2). A
loop is a frame. Values come in through Enter. Merge outputs the value of Enter
in the first iteration, and later the value of the iteration before. LoopCond
decides whether another iteration runs. Switch sends the value into the body or
to Exit. If a loop of T iterations is entered once, then

* Enter and Exit run once,
* Merge, LoopCond, Switch and the ops of the condition run T + 1 times,
* the body, with NextIteration, runs T times.

Numbers of nested loops multiply. A Switch outside of this pattern is a
condition. Ops that are reachable only through one of its outputs run only in
this branch. If the condition is a constant, its branch runs. Otherwise the
branch with more work is assumed to run (floating point operations, then number
of ops), but not a branch that fails an assertion.

If T is unknown, it is the number that the caller gives. If several nested loops
are unknown, this number is the product of their iterations. If each of several
nested loops were assumed to run so often, the innermost ops would run far more
often than observed.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Callable, Iterator, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler import spelling
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.control_flow import values as values_lib

# A tag of an op: the tensor of a condition, or a LoopCond, and the branch.
_Tag = tuple[values_lib.Tensor, int]
_NO_TAGS: frozenset[_Tag] = frozenset()


@dataclasses.dataclass(frozen=True, eq=False)
class Frames:
  """The control flow of a graph of N ops.

  Attributes:
    executions: float64 [N], how often an op runs in one step.
    exits: (NextIteration, Exit) ops. They replace the edges from NextIteration
      to Merge: an Exit waits for the last iteration.
    assumed: Names of the loops whose number of iterations is unknown.
    values: Evaluator of tensors; None if there is no control flow and no call
      whose result is a known number.
  """

  executions: np.ndarray
  exits: tuple[tuple[int, int], ...] = ()
  assumed: tuple[str, ...] = ()
  values: values_lib.Values | None = None


@dataclasses.dataclass
class _Frame:
  """A while loop. Frame 0 has the ops that are in no loop."""
  parent: int
  name: str
  depth: int
  entry_tags: frozenset[_Tag] = _NO_TAGS
  trips: float = 0.
  entries: float = 1.


def describe_assumed(names: Sequence[str], trip_count: float) -> str:
  """Returns one line about the loops of unknown length, at least one."""
  plural = 's' * (len(names) > 1)
  together = ', nested loops together' if plural else ''
  return (f'{len(names)} while loop{plural} of unknown length ("{names[0]}"'
          f'{", ..." if plural else ""}) counted as {trip_count:g} iterations'
          f'{together}; {spelling.argument("trip_count")} sets the number.')


def analyse(nodes: Sequence[node_def_pb2.NodeDef],
            edges: Sequence[tuple[int, int, int]], flops: np.ndarray,
            shape_of: Callable[[values_lib.Tensor], Sequence[int] | None],
            trip_count: float = assumptions.DEFAULT_TRIP_COUNT,
            numbers: Mapping[values_lib.Tensor, float] | None = None) -> Frames:
  """Finds loops and conditions. In a malformed graph, all ops run once.

  Args:
    nodes: [N], NodeDefs.
    edges: (producer, output index or -1, consumer), with loop-carried edges.
    flops: float64 [N], operations of one execution.
    shape_of: Function that returns the shape of a tensor; None if unknown.
    trip_count: Iterations of loops whose number the graph does not tell. If
      such loops are nested, this is the product of their iterations.
    numbers: Results of calls that are known numbers.
  """
  once = Frames(np.ones(len(nodes)))
  if not numbers and not any(node.op in op_kinds.CONTROL_FLOW
                             for node in nodes):
    return once
  analysis = _Analysis(nodes, edges, shape_of, numbers)
  if not analysis.well_formed:
    return once
  return analysis.result(flops, trip_count)


class _Analysis:
  """Visits all ops in topological order, then computes executions."""

  def __init__(self, nodes: Sequence[node_def_pb2.NodeDef],
               edges: Sequence[tuple[int, int, int]],
               shape_of: Callable[[values_lib.Tensor], Sequence[int] | None],
               numbers: Mapping[values_lib.Tensor, float] | None) -> None:
    self._nodes = nodes
    self._types = [node.op.removeprefix('Ref') for node in nodes]
    self._inputs: list[list[tuple[int, int]]] = [[] for _ in nodes]
    self._forward: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for source, output, target in edges:
      if output >= 0:
        self._inputs[target].append((source, output))
      if not self._carried(source, target):
        self._forward[target].append((source, output))
    self._values = values_lib.Values(nodes, self._inputs, shape_of, numbers)
    self._frames = [_Frame(-1, '', 0)]
    self._numbers: dict[tuple[int, str], int] = {}
    self._frame_of = [0] * len(nodes)
    self._tags = [_NO_TAGS] * len(nodes)
    self._loop_conds: dict[int, int] = {}
    self._conditions: dict[values_lib.Tensor, int] = {}
    self._united: dict[tuple[frozenset[_Tag], ...], frozenset[_Tag]] = {}
    order = native_graph.order(len(nodes),
                               [(source, target)
                                for target, inputs in enumerate(self._forward)
                                for source, _ in inputs]).tolist()
    self.well_formed = len(order) == len(nodes) and all(
        self._visit(op) for op in order)

  def _carried(self, source: int, target: int) -> bool:
    return (self._types[source] == 'NextIteration' and
            self._types[target] == 'Merge')

  def _visit(self, op: int) -> bool:
    """Finds an op's frame and tags; returns whether they are well-formed."""
    kind, inputs = self._types[op], self._forward[op]
    outside = 0
    if len(self._frames) > 1:  # Most graphs with conditions have no loop.
      outside = max((self._out_frame(s) for s, _ in inputs), default=0,
                    key=lambda f: self._frames[f].depth)
    if kind == 'Enter':
      self._frame_of[op] = self._enter(op, outside)
      return True
    self._frame_of[op] = outside
    if kind == 'Merge':
      # A Merge runs if any of its values arrives. Control edges do not prevent
      # it.
      live = [self._out_tags(*i) for i in inputs if i[1] >= 0]
      self._tags[op] = frozenset.intersection(*live) if live else _NO_TAGS
    else:
      self._tags[op] = self._union([self._out_tags(*i) for i in inputs])
    if kind == 'LoopCond':
      self._loop_conds[outside] = op
    if kind in op_kinds.SWITCHES and len(self._inputs[op]) != 2:
      return False
    return outside > 0 or kind not in ('Exit', 'LoopCond', 'NextIteration')

  def _enter(self, op: int, outside: int) -> int:
    name = self._nodes[op].attr['frame_name'].s.decode(errors='replace')
    key = outside, name
    if key not in self._numbers:
      self._numbers[key] = len(self._frames)
      self._frames.append(_Frame(outside, name,
                                 self._frames[outside].depth + 1))
    frame = self._frames[self._numbers[key]]
    frame.entry_tags = self._union(
        [frame.entry_tags] + [self._out_tags(*i) for i in self._forward[op]])
    return self._numbers[key]

  def _out_frame(self, op: int) -> int:
    frame = self._frame_of[op]
    return self._frames[frame].parent if self._types[op] == 'Exit' else frame

  def _out_tags(self, op: int, output: int) -> frozenset[_Tag]:
    """Returns the conditions under which a consumer gets an output."""
    kind = self._types[op]
    if kind == 'Exit':
      return self._frames[self._frame_of[op]].entry_tags
    if kind not in op_kinds.SWITCHES or output < 0 or len(
        self._inputs[op]) != 2:
      return self._tags[op]
    condition = self._condition(op)
    if self._types[condition[0]] != 'LoopCond':
      self._conditions.setdefault(condition, op)
    return self._union([self._tags[op], frozenset(((condition, output),))])

  def _condition(self, switch: int) -> values_lib.Tensor:
    """Returns the tensor that decides: a LoopCond or the predicate."""
    tensor = self._inputs[switch][1]
    while self._types[tensor[0]] == 'Identity' and self._inputs[tensor[0]]:
      tensor = self._inputs[tensor[0]][0]
    if self._types[tensor[0]] == 'LoopCond':
      return tensor
    return self._values.source(tensor)

  def _decider(self, merge: int) -> tuple[values_lib.Tensor, bool] | None:
    """Returns the condition that decides the input of a Merge.

    The second part of the result is whether the first input comes from the true
    branch. The result is None if no single condition decides.
    """
    branches = [
        self._out_tags(*i) - self._tags[merge] for i in self._inputs[merge]
    ]
    if [len(tags) for tags in branches] != [1, 1]:
      return None
    (first, branch), (second, other) = itertools.chain(*branches)
    return (first,
            bool(branch)) if first == second and branch != other else None

  def _union(self, sets: Sequence[frozenset[_Tag]]) -> frozenset[_Tag]:
    sets = tuple(dict.fromkeys(s for s in sets if s))
    if len(sets) < 2:
      return sets[0] if sets else _NO_TAGS
    if sets not in self._united:
      self._united[sets] = frozenset.union(*sets)
    return self._united[sets]

  def result(self, flops: np.ndarray, trip_count: float) -> Frames:
    """Returns the result after all ops were visited."""
    self._values.set_loops(self._frame_of, self._loop_conds, self._decider)
    assumed = []
    known = [None, *map(self._values.trips, range(1, len(self._frames)))]
    nested = self._nested([trips is None for trips in known])
    for number, frame in enumerate(self._frames[1:], 1):
      turns = known[number]
      if turns is None:
        assumed.append(frame.name)
        turns = trip_count**(1 / nested[number])
      frame.trips = turns
    every_branch = self._executions({})
    taken = self._taken(flops, every_branch)
    executions = self._executions(taken) if taken else every_branch
    return Frames(executions, tuple(self._exits()), tuple(assumed),
                  self._values)

  def _nested(self, unknown: list[bool]) -> list[int]:
    """Returns how deeply unknown loops are nested at each loop, [F].

    The depth counts the unknown loops around the loop, the unknown loops in the
    deepest nest inside it, and the loop itself if it is unknown.
    """
    own = [int(flag and number > 0) for number, flag in enumerate(unknown)]
    around, within = list(own), list(own)
    for number, frame in enumerate(self._frames[1:], 1):  # Parents come first.
      around[number] += around[frame.parent]
    for number in range(len(self._frames) - 1, 0, -1):
      parent = self._frames[number].parent
      within[parent] = max(within[parent], own[parent] + within[number])
    return [a + w - o for a, w, o in zip(around, within, own)]

  def _executions(self, taken: Mapping[tuple[int, int], int]) -> np.ndarray:
    """Returns executions for given branches of conditions, float64 [N]."""
    for frame in self._frames[1:]:  # Parents come first.
      frame.entries = (self._frames[frame.parent].entries
                       * self._factor(frame.parent, frame.entry_tags, taken))
    result = np.empty(len(self._nodes))
    factors = {}
    for op, kind in enumerate(self._types):
      key = number, tags = self._frame_of[op], self._tags[op]
      if kind == 'Enter' or kind == 'Exit':
        result[op] = self._frames[number].entries
        continue
      if key not in factors:
        factors[key] = self._frames[number].entries * self._factor(
            number, tags, taken)
      result[op] = factors[key]
    return result

  def _factor(self, number: int, tags: frozenset[_Tag],
              taken: Mapping[values_lib.Tensor, int]) -> float:
    """Returns the runs of an op with these tags per entry into its frame."""
    cond = self._loop_conds.get(number)
    result = self._frames[number].trips + 1 if number else 1.
    for (op, output), branch in tags:
      if op == cond:
        result = min(result, self._frames[number].trips if branch else 1.)
      elif taken.get((op, output), branch) != branch:
        return 0.
    return result

  def _taken(self, flops: np.ndarray,
             executions: np.ndarray) -> dict[values_lib.Tensor, int]:
    """Returns the branch that each condition takes; inner ones decide first."""
    if not self._conditions:
      return {}
    work: dict[tuple[int, frozenset[_Tag]], np.ndarray] = {}
    for op, key in enumerate(zip(self._frame_of, self._tags)):
      if key[0] or key[1]:
        total = work.setdefault(key, np.zeros(3))
        total += (-1. if self._types[op] == 'Assert' else 0.,
                  flops[op] * executions[op], executions[op])
    around = [_NO_TAGS]
    for frame in self._frames[1:]:
      around.append(around[frame.parent] | frame.entry_tags)
    groups = [(around[number] | tags, total)
              for (number, tags), total in work.items()]
    result = {}
    for condition, switch in reversed(self._conditions.items()):
      branch = self._constant_branch(condition, switch)
      if branch is None:
        branch = _branch_with_most_work(condition, groups)
      result[condition] = branch
      groups = [(tags, total) for tags, total in groups
                if not any(c == condition and b != branch for c, b in tags)]
    return result

  def _constant_branch(self, condition: tuple[int, int],
                       switch: int) -> int | None:
    value = self._values.scalar(condition)
    if value is None or self._types[switch] == 'Switch':
      return None if value is None else int(bool(value))
    last = self._nodes[switch].attr['num_outs'].i - 1
    return int(value) if 0 <= value <= last else last

  def _exits(self) -> Iterator[tuple[int, int]]:
    """Yields edges that replace those from NextIteration to Merge.

    An Exit waits for its own variable and for the condition, which waits for
    the variables that it depends on.
    """
    exits_of: dict[int, list[int]] = {}
    exits_in: dict[int, list[int]] = {}
    merges: dict[int, list[tuple[int, int]]] = {}
    for op, kind in enumerate(self._types):
      if kind == 'Exit':
        exits_in.setdefault(self._frame_of[op], []).append(op)
        exits_of.setdefault(self._variable(op), []).append(op)
      elif kind == 'Merge':
        for source, _ in self._inputs[op]:
          if self._types[source] == 'NextIteration':
            merges.setdefault(self._frame_of[op], []).append((source, op))
    for number, variables in merges.items():
      decisive = self._decisive(number)
      if not any(merge in decisive for _, merge in variables):
        decisive = {merge for _, merge in variables}
      for following, merge in variables:
        for op in (exits_in.get(number, ())
                   if merge in decisive else exits_of.get(merge, ())):
          yield following, op

  def _variable(self, op: int) -> int:
    """Returns the Merge of the loop variable that an Exit outputs."""
    while self._types[op] in ('Exit', 'Switch',
                              'Identity') and (self._inputs[op]):
      op = self._inputs[op][0][0]
    return op

  def _decisive(self, number: int) -> set[int]:
    """Returns the Merges of a frame that its LoopCond depends on."""
    cond = self._loop_conds.get(number)
    seen, waiting = set(), [] if cond is None else [cond]
    while waiting:
      op = waiting.pop()
      if op not in seen and self._frame_of[op] == number:
        seen.add(op)
        if self._types[op] != 'Merge':
          waiting.extend(source for source, _ in self._forward[op])
    return {op for op in seen if self._types[op] == 'Merge'}


def _branch_with_most_work(
    condition: tuple[int, int], groups: Sequence[tuple[frozenset[_Tag],
                                                       np.ndarray]]) -> int:
  """Returns the branch with the most work; of equal branches the later.

  A branch without an assertion is preferred to one with an assertion. Then
  FLOPs decide, then the number of ops.
  """
  work: dict[int, np.ndarray] = {}
  for tags, total in groups:
    for found, branch in tags:
      if found == condition:
        work[branch] = work.get(branch, np.zeros(3)) + total
  return max(work, key=lambda b: (*work[b].tolist(), b), default=1)
