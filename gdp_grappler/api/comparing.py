"""Compares several placers on one step."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from typing import Any, Mapping, Sequence

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.api import arguments
from gdp_grappler.api import placed_step
from gdp_grappler.api import placing
from gdp_grappler.api import subjects
from gdp_grappler.api import telling
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import assumptions
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.reports import tables
from gdp_grappler.reports import units

# It may leave ops that have to be on a GPU beside others on the CPU.
_ONE_DEVICE = 'single_device'
DEFAULT_PLACERS = (_ONE_DEVICE, 'metis', 'm_etf', registry.DEFAULT)


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
  """The result of `compare`, which prints as a table.

  Attributes:
    placed: Placed step of each placer, by the name of the placer. Steps that
      fit the memories come first, and shorter steps before longer ones.
    failures: Why a placer has no placed step, by the name of the placer.
  """

  placed: dict[str, placed_step.PlacedStep]
  failures: dict[str, str]

  @property
  def best(self) -> placed_step.PlacedStep:
    """The first step of `placed`, which fits if any step fits.

    Raises:
      InfeasiblePlacementError: no placer has placed the graph.
    """
    if not self.placed:
      raise errors.InfeasiblePlacementError(
          'No placer has placed the graph: '
          + ' '.join(f'{k}: {v}' for k, v in self.failures.items()))
    return next(iter(self.placed.values()))

  def to_json(self) -> str:
    """Returns the table as JSON."""
    rows = [{
        'placer': name, 'step_time_s': placed.step_time_s,
        'speedup': placed.speedup if math.isfinite(placed.speedup) else None,
        'fits': placed.fits, 'cut_bytes': placed.placement.cut(placed.graph)[1]
    } for name, placed in self.placed.items()]
    return json.dumps(
        {'simulated': True, 'placers': rows, 'failures': self.failures},
        indent=1)

  def show(self) -> None:
    """Prints the table."""
    sys.stdout.write(f'{self}\n')

  def __str__(self) -> str:
    return '\n'.join([tables.text(self._rows()), *self._notes()])

  def __repr__(self) -> str:
    steps = (f'{name} {units.ms(placed.step_time_s)}'
             for name, placed in self.placed.items())
    return f'<Comparison {", ".join([*steps, *self.failures])} (simulated)>'

  def _repr_html_(self) -> str:
    return tables.as_html(self._rows()) + tables.paragraph(self._notes())

  def _notes(self) -> list[str]:
    """Returns why placers failed, and what differs from a single device."""
    result = [f'{name}: {why}' for name, why in self.failures.items()]
    placed = self.placed.get(_ONE_DEVICE)
    if (placed is not None and placed.on_one_device.valid and
        placed.fifo.step_time_s != placed.on_one_device.step_time_s):
      result.append(f'{_ONE_DEVICE}: {_where(placed.placement)}. Speed-ups are '
                    f'against {_where(placed.one_device)}.')
    return result

  def _rows(self) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [('placer', 'simulated step', 'speed-up',
                                    'cut', 'fits')]
    for name, placed in self.placed.items():
      rows.append(
          (name, units.ms(placed.step_time_s),
           f'{placed.speedup:.2f}x' if placed.on_one_device.valid else '-',
           units.amount(placed.placement.cut(placed.graph)[1],
                        'B'), 'yes' if placed.fits else 'no'))
    return rows


def compare(graph: Any, cluster: str | cluster_lib.Cluster,
            placers: Sequence[str] = DEFAULT_PLACERS, *, order: str
            | None = None, seed: int = 0, time_budget_s: float | None = None,
            batch_size: int = assumptions.DEFAULT_BATCH_SIZE,
            trip_count: int = assumptions.DEFAULT_TRIP_COUNT, profile: str = '',
            signature: Sequence[Any] | None = None,
            shape: Mapping[str, Sequence[int]] | None = None,
            may_round: bool = False, repeatable: bool = False,
            verbose: bool | str = telling.AUTO,
            tell: telling.Tell | None = None) -> Comparison:
  """Places a step by several placers. The graph is read once.

    gdp_grappler.compare(model, '2xP100', ['metis', 'm_etf', 'gdp']).show()

  Args:
    graph: See `place`.
    cluster: See `place`.
    placers: Names of placers; see `gdp place --help`. A placer that cannot be
      used or raises an error is in `Comparison.failures`.
    order: See `place`.
    seed: See `place`.
    time_budget_s: Time limit of each placer, its order included, in seconds.
    batch_size: See `place`.
    trip_count: See `place`.
    profile: See `place`.
    signature: See `place`.
    shape: See `place`.
    may_round: See `place`.
    repeatable: See `place`.
    verbose: See `place`.
    tell: See `place`.

  Raises:
    GdpError: the graph or the cluster cannot be used, the name of a placer is
      unknown, or there is none.
  """
  arguments.check_search(seed, time_budget_s, repeatable)
  arguments.check_names(profile=profile)
  arguments.check_placers(placers)
  arguments.check_order(order)
  failures = _unusable([registry.get(name) for name in placers])
  placed: dict[str, placed_step.PlacedStep] = {}
  clock = deadlines.still if repeatable else time.monotonic
  with telling.listener(tell, verbose) as heard:
    subject = subjects.read(
        graph, cluster,
        subjects.Reading(batch_size, trip_count, profile, signature, heard,
                         may_round, shape=shape))
    for name in placers:
      if name in failures:
        continue
      try:
        placed[name] = placing.by_placer(
            subject, subject.step, name, order=order, seed=seed,
            deadline=deadlines.within(time_budget_s, clock))
      except errors.GdpError as error:
        failures[name] = str(error)
  ranked = sorted(placed, key=lambda n:
                  (not placed[n].fits, placed[n].step_time_s))
  return Comparison({name: placed[name] for name in ranked}, failures)


def _where(placement: placement_lib.Placement) -> str:
  """Returns '3 ops on CPU:0, 4 ops on GPU:0'."""
  return ', '.join(f'{units.count(number, "op")} on {label}'
                   for label, number in placement.counts().items() if number)


def _unusable(placers: Sequence[placer_table.Entry]) -> dict[str, str]:
  """Imports placers, and returns why some cannot be used, by placer.

  Placers that need Keras 2 come first, because they have to be imported before
  TensorFlow, which other placers import.
  """
  failures = {}
  for entry in sorted(
      placers, key=lambda entry: placer_table.Need.KERAS_2 not in entry.needs):
    try:
      registry.factory(entry.name)
    except errors.GdpError as error:
      failures[entry.name] = str(error)
  return failures
