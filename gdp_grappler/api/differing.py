"""Compares two plans of one step, and prices their differences."""

from __future__ import annotations

import dataclasses
import json
import sys

import numpy as np

from gdp_grappler import errors
from gdp_grappler.api import given_steps
from gdp_grappler.api import placed_step
from gdp_grappler.cluster import numbered_names
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import tables
from gdp_grappler.reports import units

_MOST_OPS = 20  # Limit of the printed rows. JSON has all rows.


@dataclasses.dataclass(frozen=True)
class Side:
  """One of the two plans.

  Attributes:
    name: File or placer of the plan.
    step_time_s: Simulated step time in the plan's order, in seconds.
    fifo_step_time_s: Simulated step time in FIFO order, in seconds.
    fits: Whether no memory overflows.
    cut_tensors: Number of tensors that are sent between devices.
    cut_bytes: Bytes of these tensors.
    peak_bytes: [P], highest use of each memory, in bytes.
  """

  name: str
  step_time_s: float
  fifo_step_time_s: float
  fits: bool
  cut_tensors: int
  cut_bytes: int
  peak_bytes: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Shift:
  """Ops that one plan has on one device and the other on another.

  Attributes:
    source: Label of their device in the first plan.
    target: Label of their device in the second plan.
    ops: Number of these ops.
    seconds: Simulated seconds of these ops on the target.
    param_bytes: Bytes of the parameters of these ops.
    step_time_s: Simulated step time, in FIFO order and in seconds, of the first
      plan after only these ops moved.
  """

  source: str
  target: str
  ops: int
  seconds: float
  param_bytes: int
  step_time_s: float


@dataclasses.dataclass(frozen=True)
class MovedOp:
  """An op that the two plans have on different devices.

  Attributes:
    name: Name of the op.
    op_type: Type of the op, such as 'MatMul'.
    source: Label of its device in the first plan.
    target: Label of its device in the second plan.
    before_s: Simulated seconds of the op on the source.
    after_s: Simulated seconds of the op on the target.
    variable: Name of the variable that the op stands for; '' if the op's name
      tells it or there is none.
  """

  name: str
  op_type: str
  source: str
  target: str
  before_s: float
  after_s: float
  variable: str = ''


@dataclasses.dataclass(frozen=True)
class Difference:
  """The result of `diff`.

  Attributes:
    num_ops: Number of ops of the graph.
    before: The first plan.
    after: The second plan.
    shifts: Moved ops by pair of devices, pairs with the most ops first.
    moved: Ops on different devices, the ops with the most seconds first.
  """

  num_ops: int
  before: Side
  after: Side
  shifts: tuple[Shift, ...]
  moved: tuple[MovedOp, ...]

  @property
  def change_s(self) -> float:
    """Seconds by which the second plan's step is longer."""
    return self.after.step_time_s - self.before.step_time_s

  def to_json(self) -> str:
    """Returns the whole difference as JSON."""
    return json.dumps(
        {
            'simulated': True, 'change_s': self.change_s,
            **dataclasses.asdict(self)
        }, indent=1)

  def show(self) -> None:
    """Prints the difference."""
    sys.stdout.write(f'{self}\n')

  def __str__(self) -> str:
    lines = [tables.wrapped(self._headline()), tables.text(self._sides())]
    if self.moved:
      scope = tables.common_scope(op.name for op in self.moved[:_MOST_OPS])
      lines += ['', tables.text(self._shifts()), '']
      lines += [tables.wrapped(tables.left_out(scope))] if scope else []
      lines.append(tables.text(self._ops(scope)))
    return '\n'.join(lines + tables.more(self.moved, _MOST_OPS, 'op'))

  def __repr__(self) -> str:
    return f'<Difference {self._headline()}>'

  def _repr_html_(self) -> str:
    return (tables.paragraph([self._headline()]) + tables.as_html(self._sides())
            + tables.as_html(self._shifts()) + tables.as_html(self._ops())
            + tables.paragraph(tables.more(self.moved, _MOST_OPS, 'op')))

  def _headline(self) -> str:
    return (f'{len(self.moved)} of {self.num_ops} ops moved; the simulated '
            f'step changes by {self.change_s * 1e3:+.4g} ms')

  def _sides(self) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [('', 'step', 'first in, first out', 'cut',
                                    'memory')]
    for what, side in (('before', self.before), ('after', self.after)):
      rows.append(
          (what, units.ms(side.step_time_s), units.ms(side.fifo_step_time_s),
           f'{units.count(side.cut_tensors, "tensor")}, '
           f'{units.amount(side.cut_bytes, "B")}',
           'fits' if side.fits else 'overflows'))
    return rows

  def _shifts(self) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [('from', 'to', 'ops', 'take', 'variables',
                                    'step with these alone')]
    for shift in self.shifts:
      rows.append(
          (shift.source, shift.target, str(shift.ops), units.ms(shift.seconds),
           units.amount(shift.param_bytes, 'B'), units.ms(shift.step_time_s)))
    return rows

  def _ops(self, scope: str = '') -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [('from', 'to', 'took', 'takes', 'op')]
    rows += [(op.source, op.target, units.ms(op.before_s), units.ms(op.after_s),
              op_graph.label(op.name.removeprefix(scope), op.variable))
             for op in self.moved[:_MOST_OPS]]
    return rows


def diff(before: placed_step.PlacedStep,
         after: placed_step.PlacedStep) -> Difference:
  """Compares two plans of one step.

    gdp_grappler.diff(gdp_grappler.load_plan('old.json', 'graph.pb'), plan)

  Args:
    before: A step from `place` or `load_plan`.
    after: Another such step, of the same graph on the same cluster.

  Raises:
    PlanError: the steps are of different graphs or clusters, or a value is no
      step.
  """
  given_steps.check(before=before, after=after)
  graph, cluster = before.graph, before.step.cluster
  names = numbered_names.names_before(after.graph, graph.names,
                                      graph.fingerprint)
  if names is None or cluster != after.step.cluster:
    raise errors.PlanError(
        f'The plans are of "{graph.name}" on {cluster.name} and of '
        f'"{after.graph.name}" on {after.step.cluster.name}. Give two of one '
        'graph on one cluster.')
  old, new = before.placement.devices, after.placement.devices
  seconds = before.simulator.op_seconds(graph)
  labels = cluster.device_labels
  rows = np.arange(graph.num_ops)
  before_s, after_s = seconds[rows, old], seconds[rows, new]
  moved = np.flatnonzero(old != new)
  moved = moved[np.argsort(-after_s[moved], kind='stable')]
  return Difference(
      graph.num_ops, _side(before), _side(after),
      tuple(_shifts(before, new, after_s)),
      tuple(
          MovedOp(graph.names[op], graph.op_types[op],
                  labels[old[op]], labels[new[op]], float(before_s[op]),
                  float(after_s[op]), graph.variables[op])
          for op in moved.tolist()))


def _side(placed: placed_step.PlacedStep) -> Side:
  tensors, size = placed.placement.cut(placed.graph)
  return Side(placed.placed_by, placed.step_time_s, placed.fifo.step_time_s,
              placed.fits, tensors, size, placed.fifo.peak_bytes)


def _shifts(before: placed_step.PlacedStep, new: np.ndarray,
            after_s: np.ndarray) -> list[Shift]:
  """Returns the shift of each pair of devices, each priced alone."""
  graph, old = before.graph, before.placement.devices
  labels = before.step.cluster.device_labels
  found = []
  for source, target in np.unique(np.stack([old, new]), axis=1).T.tolist():
    if source == target:
      continue
    ops = np.flatnonzero((old == source) & (new == target))
    devices = old.copy()
    devices[ops] = target
    priced = before.simulator.evaluate(
        graph, placement_lib.Placement(devices, before.step.cluster))
    found.append(
        Shift(labels[source], labels[target],
              len(ops), float(after_s[ops].sum()),
              int(graph.param_bytes[ops].sum()), priced.step_time_s))
  return sorted(found, key=lambda shift: -shift.ops)
