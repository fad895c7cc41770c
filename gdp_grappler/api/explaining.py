"""Explains the devices of ops, and prices the ops on other devices."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
import sys

import numpy as np

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.api import given_steps
from gdp_grappler.api import placed_step
from gdp_grappler.cluster import layer_devices
from gdp_grappler.cluster import layer_map
from gdp_grappler.evaluation import critical_chain
from gdp_grappler.evaluation import what_if
from gdp_grappler.graph import op_graph
from gdp_grappler.placers.plans import layers as layers_lib
from gdp_grappler.reports import tables
from gdp_grappler.reports import units

# Number of op names that an error shows if no op matches.
_NAMED = 3
# Number of ops in the printed text. JSON has all ops.
_MOST_OPS = 20
# Number of sent tensors in the printed text. JSON has all tensors.
_MOST_CUTS = 10


@dataclasses.dataclass(frozen=True)
class ExplainedOp:
  """An op, and why it is on its device.

  Attributes:
    name: Name of the op.
    op_type: Type of the op, such as 'MatMul'.
    device: Label of its device.
    kind: Kind of the reason for the device (see `reasons.Reason`): 'free',
      'pin', 'stays', 'kernel', 'numbers' or 'colocation'.
    why: The reason, as a clause for users.
    group_ops: Number of ops in its group, itself included.
    seconds: Simulated seconds of the op on each device, by label.
    start_s: Start of the op in the simulated step in FIFO order, in seconds.
    end_s: End of the op in this step, in seconds.
    on_critical_chain: Whether the op is on the critical chain of this step.
    output_bytes: Bytes of its outputs.
    param_bytes: Bytes of the parameters that it holds during the whole step.
    variable: Name of the variable that the op stands for; '' if the op's name
      tells it or there is none.
  """

  name: str
  op_type: str
  device: str
  kind: str
  why: str
  group_ops: int
  seconds: dict[str, float]
  start_s: float
  end_s: float
  on_critical_chain: bool
  output_bytes: int
  param_bytes: int
  variable: str = ''

  @property
  def label(self) -> str:
    """The user's name of the op."""
    return op_graph.label(self.name, self.variable)

  def describe(self, scope: str) -> str:
    """Returns the op, its device and the reason, with names without a scope."""
    name = op_graph.label(self.name.removeprefix(scope), self.variable)
    # Names in the reason come after a space or a bracket.
    why = re.sub(rf'(?<=[ \[]){re.escape(scope)}', '', self.why)
    return f'{name} ({self.op_type}) on {self.device} {why}'


@dataclasses.dataclass(frozen=True)
class Elsewhere:
  """The step after the groups of the explained ops moved to one device.

  Attributes:
    device: Label of that device. Groups that may not have it do not move.
    groups: Number of groups that may have the device.
    step_time_s: Simulated step time in FIFO order, in seconds.
    change_s: Difference from the step time of the plan, in seconds.
    overflow_bytes: Bytes by which memories overflow.
    cut_tensors: Number of tensors that are sent between devices.
    cut_bytes: Bytes of these tensors.
  """

  device: str
  groups: int
  step_time_s: float
  change_s: float
  overflow_bytes: int
  cut_tensors: int
  cut_bytes: int


@dataclasses.dataclass(frozen=True)
class Sent:
  """A tensor that is sent between devices.

  An op in a group of the explained ops makes or reads the tensor.

  Attributes:
    op: Name of the op that makes the tensor.
    source: Label of the device of this op.
    target: Label of the device that receives the tensor.
    size_bytes: Bytes of the tensor.
    seconds: Seconds of the transfer over an idle link.
    variable: Name of the variable that `op` stands for; '' if the op's name
      tells it or there is none.
  """

  op: str
  source: str
  target: str
  size_bytes: int
  seconds: float
  variable: str = ''


@dataclasses.dataclass(frozen=True)
class Explanation:
  """The result of `explain`.

  Attributes:
    pattern: The user's name or pattern of ops.
    step_time_s: Simulated step time of the plan in FIFO order, in seconds.
    ops: Ops that the pattern matches, in the order of the graph.
    elsewhere: The step after a move, for each device to which some group can
      move; empty if no group can move.
    sent: Tensors that the groups of these ops make or read, largest first.
  """

  pattern: str
  step_time_s: float
  ops: tuple[ExplainedOp, ...]
  elsewhere: tuple[Elsewhere, ...]
  sent: tuple[Sent, ...]

  def to_json(self) -> str:
    """Returns the whole explanation as JSON."""
    return json.dumps({'simulated': True, **dataclasses.asdict(self)}, indent=1)

  def show(self) -> None:
    """Prints the explanation."""
    sys.stdout.write(f'{self}\n')

  def __str__(self) -> str:
    scope = tables.common_scope([
        *(op.name for op in self.ops[:_MOST_OPS]),
        *(cut.op for cut in self.sent[:_MOST_CUTS])
    ])
    lines = [tables.wrapped(tables.left_out(scope)), ''] if scope else []
    for op in self.ops[:_MOST_OPS]:
      lines.append(tables.wrapped(op.describe(scope)))
      chain = ('on the critical chain'
               if op.on_critical_chain else 'not on the critical chain')
      lines.append(f'  {units.ms(op.end_s - op.start_s)}, from '
                   f'{units.ms(op.start_s)} of the step; {chain}')
    lines += tables.more(self.ops, _MOST_OPS, 'op')
    if self.elsewhere:
      lines += [
          '', tables.wrapped(self._headline()),
          tables.text(self._moves())
      ]
    if self.sent:
      lines += ['', 'Sent between devices:', tables.text(self._cuts(scope))]
      lines += tables.more(self.sent, _MOST_CUTS, 'tensor')
    return '\n'.join(lines)

  def __repr__(self) -> str:
    return (
        f'<Explanation of "{self.pattern}": {units.count(len(self.ops), "op")}'
        f' of a step of {units.ms(self.step_time_s)} (simulated)>')

  def _repr_html_(self) -> str:
    ops = [('op', 'type', 'device', 'why', 'takes', 'critical')]
    ops += [(op.label, op.op_type, op.device, op.why,
             units.ms(op.end_s - op.start_s),
             'yes' if op.on_critical_chain else '')
            for op in self.ops[:_MOST_OPS]]
    parts = [
        tables.as_html(ops),
        tables.paragraph(tables.more(self.ops, _MOST_OPS, 'op'))
    ]
    if self.elsewhere:
      parts += [
          tables.paragraph([self._headline()]),
          tables.as_html(self._moves())
      ]
    if self.sent:
      parts += [
          tables.as_html(self._cuts()),
          tables.paragraph(tables.more(self.sent, _MOST_CUTS, 'tensor'))
      ]
    return ''.join(parts)

  def _headline(self) -> str:
    what = 'it' if len(self.ops) == 1 else 'them'
    return (f'The step of {units.ms(self.step_time_s)} (simulated, first in, '
            f'first out) with {what} elsewhere:')

  def _moves(self) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [('device', 'groups', 'step', 'change', 'cut',
                                    'memory')]
    for move in self.elsewhere:
      rows.append((move.device, str(move.groups), units.ms(move.step_time_s),
                   f'{move.change_s * 1e3:+.4g} ms',
                   f'{units.count(move.cut_tensors, "tensor")}, '
                   f'{units.amount(move.cut_bytes, "B")}',
                   f'{units.amount(move.overflow_bytes, "B")} too much'
                   if move.overflow_bytes else 'fits'))
    return rows

  def _cuts(self, scope: str = '') -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [('from', 'to', 'bytes', 'takes', 'made by')]
    for cut in self.sent[:_MOST_CUTS]:
      name = op_graph.label(cut.op.removeprefix(scope), cut.variable)
      rows.append((cut.source, cut.target, units.amount(cut.size_bytes, 'B'),
                   units.ms(cut.seconds), name))
    return rows


def explain(plan: placed_step.PlacedStep, pattern: str) -> Explanation:
  """Explains the devices of ops, and prices the ops on other devices.

    gdp_grappler.explain(plan, 'decoder/*').show()

  Args:
    plan: A step from `place` or `load_plan`.
    pattern: Name of an op or of its variable; a pattern of such names with the
      wildcards of `fnmatch`, where '*' also matches '/'; or a layer or scope as
      in `cluster.layer_map`, such as 'decoder' or 'decoder/*'.

  Raises:
    GdpError: no op has such a name, or an argument is of another type.
  """
  given_steps.check(plan=plan)
  if not isinstance(pattern, str):
    raise errors.GdpError(f'pattern is {errors.one_line(repr(pattern))[:40]}; '
                          'give a text.')
  graph, reasons = plan.graph, plan.reasons
  ops = _matching(graph, pattern)
  labels = plan.step.cluster.device_labels
  fifo = dataclasses.replace(plan.placement, priorities=None)
  schedule = plan.fifo_schedule
  chain = critical_chain.critical_chain(graph, fifo, schedule)
  critical = {part.index for part in chain if not part.is_transfer}
  seconds = plan.simulator.op_seconds(graph)
  explained = []
  for op in ops:
    reason = reasons.of(op)
    explained.append(
        ExplainedOp(graph.names[op], graph.op_types[op],
                    labels[fifo.devices[op]], reason.kind, reason.text,
                    len(reasons.members(op)),
                    dict(zip(labels, seconds[op].tolist())),
                    float(schedule.start_s[op]), float(schedule.end_s[op]), op
                    in critical, int(graph.output_bytes[op]),
                    int(graph.param_bytes[op]), graph.variables[op]))
  groups = np.unique(graph.groups[ops])
  step_s = schedule.step_time_s
  return Explanation(
      pattern, step_s, tuple(explained),
      tuple(
          Elsewhere(labels[move.device], move.groups, move.step_time_s,
                    move.step_time_s - step_s, move.overflow_bytes,
                    move.cut_tensors, move.cut_bytes)
          for move in what_if.moves(graph, fifo, groups, plan.simulator)),
      tuple(
          Sent(graph.names[cut.op], labels[cut.source], labels[cut.target],
               cut.size_bytes, cut.seconds, graph.variables[cut.op])
          for cut in what_if.cuts(graph, fifo, groups)))


def _matching(graph: op_graph.OpGraph, pattern: str) -> list[int]:
  if pattern in graph.names:
    return [graph.names.index(pattern)]
  found = {
      *fnmatch.filter(graph.names, pattern),
      *fnmatch.filter(filter(None, graph.variables), pattern)
  }
  if found:
    return [
        i for i, names in enumerate(zip(graph.names, graph.variables))
        if found.intersection(names)
    ]
  inside = np.zeros(graph.num_ops, bool)
  layers = layer_map.match([pattern], graph.names, layers_lib.names(graph))
  for scopes in (layers, layer_devices.match([pattern], graph.variables)):
    inside |= (scopes.patterns >= 0) & ~scopes.only_default
  if inside.any():
    return np.flatnonzero(inside).tolist()
  start = f'No op or layer of graph "{graph.name}" is called '
  if layers.is_near:
    raise errors.GdpError(f'{start}{layers.idle[0]}.')
  last = pattern.rsplit('/', 1)[-1].strip('*').lower()
  similar = [
      name for name in (*graph.names, *graph.variables)
      if last and last in name.lower()
  ]
  near = suggestions.did_you_mean(pattern, similar[:1000], similarity=.3,
                                  most=3)
  raise errors.GdpError(f'{start}"{pattern}".' + (
      near or ' Give a name, or a pattern such as "*MatMul*". The heaviest: '
      + ', '.join(f'"{graph.names[op]}"'
                  for op in np.argsort(-graph.flops, kind='stable')[:_NAMED])
      + '.'))
