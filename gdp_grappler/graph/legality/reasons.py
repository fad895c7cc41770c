"""Explains the device of an op: the rule that leaves no choice, if any."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Mapping, Sequence, TYPE_CHECKING

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds

if TYPE_CHECKING:
  # These modules import TensorFlow, which a graph with its own costs does not
  # need.
  from gdp_grappler.graph import source_graph

FREE, PIN, STAYS, KERNEL, NUMBERS, COLOCATION = ('free', 'pin', 'stays',
                                                 'kernel', 'numbers',
                                                 'colocation')
# Value of `who` if a user's map from layers to devices chose, not a placer.
A_MAP = 'a map of layers'


@dataclasses.dataclass(frozen=True)
class Reason:
  """The rule that determined an op's device.

  Attributes:
    kind: `FREE`: no rule, the device was chosen. `PIN`: a user pinned the op.
      `STAYS`: the op has to stay because of what it does, or is on the host.
      `KERNEL`: only one type of device has a kernel. `NUMBERS`: other types
      would round its numbers differently. `COLOCATION`: another op of its group
      has no choice.
    text: A clause about the op that gives the reason.
  """

  kind: str
  text: str


def who_chose(who: str) -> str:
  """Returns a clause about who chose the device of an op that is free.

  Args:
    who: A placer's name, `A_MAP`, or '' if unknown.
  """
  if who == A_MAP:
    return f'{A_MAP} chose'
  return 'the placer chose' if who else 'the plan says so'


class Reasons:
  """The reasons for the devices of all ops of one graph on one cluster."""

  def __init__(self, graph: op_graph.OpGraph, demands: np.ndarray,
               labels: Sequence[str],
               source: source_graph.SourceGraph | None = None,
               chosen: str | Sequence[str] = 'the placer chose') -> None:
    """Initializes Reasons.

    Args:
      graph: N ops.
      demands: bool [N, D], devices that suit each op alone
        (`constraints.suitable_devices`).
      labels: [D], names of devices for users.
      source: The graph from which `graph` was read. It has the reasons why ops
        stay.
      chosen: A clause about who chose the devices of free ops; one for all, or
        [N].
    """
    self._chosen = chosen
    self._graph, self._demands, self._labels = graph, demands, labels
    self._source = source
    self.allowed = np.ones((graph.num_groups, len(labels)), bool)
    np.logical_and.at(self.allowed, graph.groups, demands)
    # Results by group, because groups may have many ops.
    self._bonds: dict[int, str] = {}
    self._strictest: dict[int, Reason] = {}

  def of(self, op: int) -> Reason:
    """Returns the reason for the device of an op."""
    group = int(self._graph.groups[op])
    if len(self._labels) == 1:
      return Reason(FREE, 'has nowhere else to go: there is one device')
    if self.allowed[group].sum() != 1:
      return Reason(FREE, self._free(op))
    if self._demands[op].sum() == 1:
      return self._own(op)
    if group not in self._strictest:
      # The first one of the ops with the fewest devices.
      members = self.members(op)
      strict = int(members[self._demands[members].sum(axis=1).argmin()])
      self._strictest[group] = Reason(
          COLOCATION, f'shares a device with {self._graph.label(strict)} '
          f'({self.bond(op)}), which {self._own(strict).text}')
    return self._strictest[group]

  def members(self, op: int) -> np.ndarray:
    """Returns the ops of an op's group, itself included, int [M]."""
    order, starts = self._by_group
    group = self._graph.groups[op]
    return order[starts[group]:starts[group + 1]]

  def bond(self, op: int) -> str:
    """Returns why a group shares a device: 'one while loop'; '' if single."""
    group = int(self._graph.groups[op])
    if group not in self._bonds:
      self._bonds[group] = self._bond(self.members(op))
    return self._bonds[group]

  def _bond(self, members: np.ndarray) -> str:
    if len(members) < 2:
      return ''
    graph = self._graph
    if any(graph.op_types[m] in op_kinds.ENTERS for m in members):
      return 'one while loop'
    if graph.param_bytes[members].any():
      return f'variable {graph.label(graph.holder(members))}'
    if any('_class' in self._attributes(int(m)) for m in members):
      return "TensorFlow's co-location"
    if self._source is None:
      return "a co-location group of the graph file"
    return 'one resource, list, reference or buffer'

  @functools.cached_property
  def _by_group(self) -> tuple[np.ndarray, np.ndarray]:
    """Ops sorted by group [N], and the start of each group [G + 1]."""
    groups = self._graph.groups
    return (np.argsort(groups, kind='stable'),
            np.concatenate([[0], np.cumsum(np.bincount(groups))]))

  def _free(self, op: int) -> str:
    others = len(self.members(op)) - 1
    who = self._chosen if isinstance(self._chosen, str) else self._chosen[op]
    text = f'is free: {who}'
    if others:
      text += (f', for it and {others} other op{"s" * (others > 1)} '
               f'({self.bond(op)})')
    lacking = [
        label
        for label, ok in zip(self._labels, self.allowed[self._graph.groups[op]])
        if not ok
    ]
    if not lacking:
      return text
    rounding = next(filter(self._rounds_elsewhere, self.members(op)), None)
    why = '' if rounding is None else f', as {self._rounding(op, rounding)}'
    return f'{text}; it may not be on {", ".join(lacking)}{why}'

  def _rounding(self, op: int, rounding: int) -> str:
    """Returns why an op of a group rounds: 'it multiplies matrices, ...'."""
    who = '' if rounding == op else f'{self._graph.label(rounding)}: '
    return f'{who}{self._why_it_rounds(rounding)}'

  def _rounds_elsewhere(self, op: int) -> bool:
    """Whether an op has a kernel for a device type that rounds differently."""
    graph = self._graph
    return not graph.may_round and bool(
        (graph.allowed_types[op] & ~graph.same_numbers[op]).any())

  def _why_it_rounds(self, op: int) -> str:
    graph = self._graph
    others = [
        kind
        for kind, same in zip(op_graph.DEVICE_TYPES, graph.same_numbers[op])
        if not same
    ]
    what = 'it computes with floats'
    if self._source is not None:
      from gdp_grappler.graph.legality import rounding
      node = self._nodes.get(graph.names[op])
      what = what if node is None else rounding.why_it_rounds(node)
    return f'{what}, and a {" or ".join(others)} may give other results'

  def _own(self, op: int) -> Reason:
    """Returns the reason of an op that itself allows only one device."""
    graph = self._graph
    pin = graph.pins[op]
    if pin and graph.user_pins[op]:
      who = 'graph' if self._source is None else 'program'
      return Reason(PIN, f'is pinned to {pin} by the {who}')
    if pin:
      node = self._nodes.get(graph.names[op])
      where = ('it is'
               if node is None or node.device == pin else 'TensorFlow puts it')
      return Reason(STAYS, f'stays where {where}: {self._why_it_stays(op)}')
    if self._rounds_elsewhere(op):
      return Reason(NUMBERS,
                    f'stays on its type of device: {self._why_it_rounds(op)}')
    types = [
        kind for kind, ok in zip(op_graph.DEVICE_TYPES, graph.allowed_types[op])
        if ok
    ]
    found = f'{" and ".join(types) or "no device"} only'
    if self._source is None:
      return Reason(KERNEL, f'may be on {found}, according to the graph file')
    return Reason(
        KERNEL,
        f'has a kernel for {found} ({graph.op_types[op]} with its data types)')

  def _why_it_stays(self, op: int) -> str:
    if self._source is None:
      return f'the graph pins it to {self._graph.pins[op]}'
    from gdp_grappler.graph.legality import node_types
    from gdp_grappler.graph.legality import pins
    node = self._nodes.get(self._graph.names[op])
    if node is None:
      return 'a function that was inlined says so'
    if pins.LEAVE_ALONE_ATTRIBUTE in node.attr:
      return 'the program asked to leave it alone'
    return (pins.why_it_stays(node, node_types.signature(node)) or
            'the caller feeds or fetches it')

  def _attributes(self, op: int) -> Mapping[str, Any]:
    node = self._nodes.get(self._graph.names[op])
    return {} if node is None else node.attr

  @functools.cached_property
  def _nodes(self) -> Mapping[str, Any]:
    if self._source is None:
      return {}
    return {node.name: node for node in self._source.graph_def.node}
