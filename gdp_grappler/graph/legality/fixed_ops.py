"""Ops that have to stay on a device, from all rules together."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import name_parts
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import asked as asked_lib
from gdp_grappler.graph.legality import colocation
from gdp_grappler.graph.legality import node_types
from gdp_grappler.graph.legality import pins as pins_lib
from gdp_grappler.graph.legality import rounding


def pins(
    source: source_graph.SourceGraph, table: node_table.NodeTable,
    signatures: Sequence[node_types.Signature], groups: np.ndarray,
    allowed_types: np.ndarray, live: bool,
    holds: Callable[[Any], bool]) -> tuple[np.ndarray, list[str], np.ndarray]:
  """Returns groups, the pins of ops [N], and whether users set them [N].

  The reads and updates of a variable are on the variable's device. So, as with
  `tf.device`, a user's pin counts on the variable, but not on these ops. In a
  live graph the pin counts on neither, because pins do not move variables.

  Args:
    source: The graph.
    table: The N nodes of the graph.
    signatures: [N], types of inputs and outputs.
    groups: int [N], groups of ops. A group that TensorFlow itself has put on
      several devices is divided into single ops, unless it is a loop that can
      be where its variables are.
    allowed_types: bool [N, types], whether there is a kernel.
    live: Whether the graph is about to run.
    holds: Function that says whether the state that a node outputs stays where
      it is.
  """
  found = table.each(
      lambda node: pins_lib.device_pin(node, node_types.signature(node)))
  result = [pin for pin, _ in found]
  by_user = np.array([user for _, user in found], bool)
  follows = (colocation.gradients_with_layers(table, groups)
             & ~table.flags(pins_lib.has_wish))
  for op in np.flatnonzero(follows).tolist():
    result[op] = asked_lib.device(table.nodes[op])
    by_user[op] = bool(result[op])
  holder = table.flags(
      lambda node: pins_lib.holds_state(node, node_types.signature(node)))
  stateful_group = np.zeros(int(groups.max()) + 1, bool)
  stateful_group[groups[holder]] = True
  void = by_user & stateful_group[groups] & (live | ~holder)
  stays = holder & table.flags(holds)
  if live:
    stays |= table.flags(pins_lib.draws_from_a_stream)
  by_user &= ~(void | stays)
  for op in np.flatnonzero(void).tolist():
    result[op] = ''
  for op in np.flatnonzero(stays).tolist():
    result[op] = table.nodes[op].device
  for op in _called_by_name(source, table.names):
    types = signatures[op]
    if not stays[op] and not by_user[op] and types.outputs and not any(
        map(node_types.is_handle, (*types.inputs, *types.outputs))):
      ran = live or bool(source.devices)
      result[op] = _pin_of_called(table.nodes[op], result[op], ran)
  _drop_impossible(table, groups, allowed_types, result, by_user)
  _pin_like_placer(table, groups, allowed_types, result, by_user, live, follows)
  if live:
    groups, result = _divide_split_groups(table, groups, result, holder,
                                          by_user)
  return groups, result, by_user


def _drop_impossible(table: node_table.NodeTable, groups: np.ndarray,
                     allowed_types: np.ndarray, pins: list[str],
                     by_user: np.ndarray) -> None:
  """Drops requests by `tf.device` that the rest of an op's group cannot follow.

  TensorFlow drops such requests as well.

  Args:
    table: N nodes.
    groups: int [N], groups of ops.
    allowed_types: bool [N, types], whether there is a kernel.
    pins: [N], pins; changed in place.
    by_user: bool [N], whether a user asked for a pin; changed in place.
  """
  wishes = table.each(asked_lib.device)
  if not any(wishes):
    return
  wishes = [
      wish if user and pin == wish else ''
      for user, pin, wish in zip(by_user, pins, wishes)
  ]
  others = ['' if wish else pin for pin, wish in zip(pins, wishes)]
  for op in np.flatnonzero(
      asked_lib.impossible(wishes, others, groups, allowed_types)).tolist():
    pins[op], by_user[op] = '', False


def _pin_like_placer(table: node_table.NodeTable, groups: np.ndarray,
                     allowed_types: np.ndarray, pins: list[str],
                     by_user: np.ndarray, live: bool,
                     follows: np.ndarray) -> None:
  """Pins ops that stay, but have no device, as TensorFlow's placer does.

  The placer takes the first GPU if all ops of the group have a kernel for it.
  An op follows the pins of its group. If the group cannot be on a GPU, an op
  that stays on a GPU counts as an op without a device: TensorFlow moves it.

  Args:
    table: N nodes.
    groups: int [N], groups of ops.
    allowed_types: bool [N, types], whether there is a kernel.
    pins: [N], pins; changed in place.
    by_user: bool [N], whether a user asked for a pin.
    live: Whether the graph is about to run. Then the devices of ops are those
      to which TensorFlow moved them.
    follows: bool [N], ops that go where another op of the group goes.
  """
  chosen = ~follows & table.flags(
      lambda node: pins_lib.by_default(node, node_types.signature(node)))
  if live and not chosen.any():
    return  # As a rule, TensorFlow has placed every op.
  cpu, gpu = map(op_graph.DEVICE_TYPES.index, ('CPU', 'GPU'))
  kinds = np.array([rounding.device_type(pin) for pin in pins])
  on_host = np.bincount(groups, ~allowed_types[:, gpu] | (kinds == cpu)) > 0
  if not live:
    moved = (kinds == gpu) & ~by_user & on_host[groups]
    chosen |= moved
    for op in np.flatnonzero(moved).tolist():
      pins[op] = ''
  pinned = np.bincount(groups, np.array(pins) != '') > 0
  for op in np.flatnonzero(chosen & ~pinned[groups]).tolist():
    kind = 'CPU' if on_host[groups[op]] else 'GPU'
    task = pins_lib.task_of(table.nodes[op].device)
    pins[op] = f'{task}/device:{kind}:0'


def _called_by_name(source: source_graph.SourceGraph,
                    names: Sequence[str]) -> list[int]:
  """Returns the ops that the caller feeds or fetches."""
  callers = {
      name_parts.node_of(name) for name in (*source.feeds, *source.fetches)
  }
  return [op for op, name in enumerate(names) if name in callers]


def _pin_of_called(node: node_def_pb2.NodeDef, pin: str, ran: bool) -> str:
  """Returns the pin of an op that the caller feeds or fetches.

  A graph that has not run has the devices of an earlier placement, or requests.
  Neither concerns a value of the caller, which comes from the host.

  Args:
    node: The op.
    pin: Its pin by other rules; '' for none.
    ran: Whether the graph has the devices of a process that runs it.
  """
  if ran:
    return pin or node.device
  return (pins_lib.host_of(node.device)
          if node.op in op_kinds.PLACEHOLDERS else pin)


def _divide_split_groups(table: node_table.NodeTable, groups: np.ndarray,
                         pins: list[str], holder: np.ndarray,
                         by_user: np.ndarray) -> tuple[np.ndarray, list[str]]:
  """Divides groups whose ops TensorFlow put on several devices.

  TensorFlow's placer has checked that these devices work. The ops keep them, so
  the ops no longer restrict others. A loop whose variables have moved stays
  whole, because on another device each iteration would fetch them again.

  Args:
    table: N nodes.
    groups: int [N], groups of ops.
    pins: [N], pins of ops.
    holder: bool [N], ops that output variables.
    by_user: bool [N], whether a user asked for a pin; set to False in place
      where an op keeps another device than its pin.

  Returns:
    Groups and pins of ops.
  """
  own = table.each(lambda node: node.device)
  numbers_of: dict[str, int] = {}
  devices = np.array(
      [numbers_of.setdefault(device, len(numbers_of)) for device in own])
  first = devices[np.unique(groups, return_index=True)[1]]
  spread = set(groups[devices != first[groups]].tolist())
  if spread and table.types & op_kinds.ENTERS:
    enters = table.flags(lambda node: node.op in op_kinds.ENTERS)
    spread -= {
        group for group in spread & set(groups[enters].tolist())
        if _has_home(own, pins, np.flatnonzero(groups == group), holder)
    }
  if not spread:
    return groups, pins
  labels = [
      (-1, i) if g in spread else (g, 0) for i, g in enumerate(groups.tolist())
  ]
  for op, group in enumerate(groups.tolist()):
    by_user[op] &= group not in spread or pins[op] == own[op]
  numbers = {label: i for i, label in enumerate(dict.fromkeys(labels))}
  pins = [
      device if g in spread else pin
      for device, g, pin in zip(own, groups.tolist(), pins)
  ]
  return np.array([numbers[label] for label in labels], np.int32), pins


def _has_home(own: Sequence[str], pins: Sequence[str], members: np.ndarray,
              holder: np.ndarray) -> bool:
  """Whether a loop can be on the device of its variables.

  Args:
    own: [N], devices of ops.
    pins: [N], pins of ops.
    members: int [K], ops of the loop.
    holder: bool [N], ops that output variables.

  Returns:
    True if all variables are on one device, TensorFlow put the loop on devices
    of this kind and task, and no op has to be on another device.
  """
  homes = {own[op] for op in members[holder[members]].tolist()}
  if len(homes) != 1:
    return False
  home, = homes
  ops = members.tolist()
  return ({own[op].rpartition(':')[0] for op in ops
          } == {home.rpartition(':')[0]} and
          {pins[op] for op in ops} <= {home, ''})
