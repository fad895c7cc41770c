"""The variable that each op uses, and which use of the variable it is."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import unique_rows

# Ops that pass on a variable's value or handle, with another type or name.
_READS = op_kinds.HANDED_ON | op_kinds.VIEWS | {'ReadVariableOp', 'Cast'}
# Limit of such ops in a chain.
_MOST_READS = 6
# Types of ops on resource variables begin with the second prefix. Types that
# begin with the first one only read the variable, all others change it.
_READING_PREFIX, _CHANGING_PREFIX = 'ResourceGather', 'Resource'
# Fewest repetitions of a sequence of variables that count as a period.
_FEWEST_PERIODS = 2


@dataclasses.dataclass(frozen=True, eq=False)
class VariableUses:
  """The V variables that the forward ops of N ops use.

  Attributes:
    reads: bool [N], whether an op is a variable or only passes on its value.
    variables: int [N], the variable an op uses, numbered by first use. If an op
      uses several, the largest one. -1 for none.
    repetitions: int [N], number of the use among all uses of the variable.
    owners: int [N], number of the variable that an op is or passes on. -1 for
      other ops, and for variables that no forward op uses.
    kinds: int [V], equal for variables of equal size whose first users have the
      same op type.
  """

  reads: np.ndarray
  variables: np.ndarray
  repetitions: np.ndarray
  owners: np.ndarray
  kinds: np.ndarray

  def periods(self) -> np.ndarray:
    """Returns the repetition of a sequence of kinds for each variable, int [V].

    The sequence is the one that covers most variables if it is repeated without
    a gap. The variables after it, such as those of the logits' layer, count as
    one more repetition if they are not more than a sequence has. Other
    variables have -1. Without a sequence, all variables have -1.
    """
    kinds = self.kinds
    result = np.full(len(kinds), -1)
    most = 0
    for period in range(1, len(kinds) // _FEWEST_PERIODS + 1):
      first, length = _longest_run(kinds[period:] == kinds[:-period])
      covered = (length // period + 1) * period if length >= period else 0
      if covered > most:
        most = covered
        result[:] = -1
        result[first:first + covered] = np.arange(covered) // period
        if len(kinds) - first - covered <= period:
          result[first + covered:] = covered // period
    return result


def reads(graph: op_graph.OpGraph) -> np.ndarray:
  """Returns the op whose variable an op holds or passes on, int [N]; or -1."""
  read = np.where(
      graph.where_type(op_kinds.VARIABLES.__contains__)
      | (only_held_bytes(graph) > 0), np.arange(graph.num_ops), -1)
  handing = graph.where_type(_READS.__contains__)
  edges = graph.edges[(graph.edge_tensors >= 0) & handing[graph.edges[:, 1]]]
  for _ in range(_MOST_READS):
    new = (read[edges[:, 0]] >= 0) & (read[edges[:, 1]] < 0)
    if not new.any():
      break
    read[edges[new, 1]] = read[edges[new, 0]]
  return read


def only_held_bytes(graph: op_graph.OpGraph) -> np.ndarray:
  """Returns bytes of the variables that are ops of their own, int64 [N].

  A variable that an op of another kind holds itself does not count.
  """
  return np.where(_works(graph), 0, graph.param_bytes)


def changes(op_type: str) -> bool:
  """Whether ops of a type change variables."""
  return (op_type in op_kinds.ASSIGNMENTS or op_type in op_kinds.IN_PLACE or
          op_type.startswith(_CHANGING_PREFIX) and
          not op_type.startswith(_READING_PREFIX))


def find(graph: op_graph.OpGraph, read: np.ndarray,
         order: np.ndarray) -> VariableUses:
  """Finds the variables that are used, and their order.

  Args:
    graph: N ops.
    read: int [N], result of `reads`.
    order: int [F], ops that are, as far as known, no part of gradients and
      updates, in the order in which they are needed.
  """
  forward = np.zeros(graph.num_ops, bool)
  forward[order] = True
  edges = graph.edges[graph.edge_tensors >= 0]
  used, user = read[edges[:, 0]], edges[:, 1]
  some = (used >= 0) & (read[user]
                        < 0) & (forward & ~graph.where_type(changes))[user]
  own = np.flatnonzero((graph.param_bytes > 0) & _works(graph) & forward)
  used, user = (
      np.concatenate([array, own]) for array in (used[some], user[some]))
  variable = np.full(graph.num_ops, -1)
  by_size = np.argsort(_held_bytes(graph, read)[used], kind='stable')
  variable[user[by_size]] = used[by_size]
  return _numbered(graph, variable, read, order)


def _numbered(graph: op_graph.OpGraph, variable: np.ndarray, read: np.ndarray,
              order: np.ndarray) -> VariableUses:
  """Numbers variables by first use, from the ops that hold them, int [N]."""
  users = order[variable[order] >= 0]
  holders, first = np.unique(variable[users], return_index=True)
  rank = np.full(graph.num_ops + 1, -1)  # The last one is that of none.
  rank[holders[np.argsort(first)]] = np.arange(len(holders))
  number = rank[variable]
  repetition = np.full(graph.num_ops, -1)
  by_variable = users[np.argsort(number[users], kind='stable')]
  counts = np.bincount(number[users], minlength=len(holders))
  repetition[by_variable] = np.arange(len(users)) - np.repeat(
      np.cumsum(counts) - counts, counts)
  first_users = users[np.sort(first)]
  held = _held_bytes(graph, read)[variable[first_users]]
  types = np.unique([graph.op_types[op] for op in first_users],
                    return_inverse=True)[1].reshape(-1)
  return VariableUses(read >= 0, number, repetition, rank[read],
                      unique_rows.distinct([held, types])[1])


def _held_bytes(graph: op_graph.OpGraph, read: np.ndarray) -> np.ndarray:
  """Returns bytes of an op's variable, or of the largest value read, [N]."""
  result = graph.param_bytes.copy()
  some = np.flatnonzero(read >= 0)
  np.maximum.at(result, read[some], graph.output_bytes[some])
  return result


def _works(graph: op_graph.OpGraph) -> np.ndarray:
  """Marks ops that do more than hold or pass on a value, bool [N].

  In measured graphs of other programs, such an op may hold a variable itself.
  In functions, variables are arguments.
  """
  idle = op_kinds.VARIABLES | op_kinds.ARGUMENTS | _READS | {'Const'}
  return ~graph.where_type(idle.__contains__)


def _longest_run(same: np.ndarray) -> tuple[int, int]:
  """Returns the start and the length of the longest run of True."""
  ends = np.flatnonzero(np.diff(np.concatenate([[0], same, [0]]).astype(int)))
  if not ends.size:
    return 0, 0
  lengths = ends[1::2] - ends[::2]
  longest = int(lengths.argmax())
  return int(ends[::2][longest]), int(lengths[longest])
