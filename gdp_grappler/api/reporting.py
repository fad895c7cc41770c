"""Writes plans of one step as a page for the browser."""

from __future__ import annotations

import collections.abc
import os
import pathlib
from typing import Sequence

from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import files
from gdp_grappler.api import given_steps
from gdp_grappler.api import layering
from gdp_grappler.api import placed_step
from gdp_grappler.evaluation import price as price_lib
from gdp_grappler.placers import step as step_lib
from gdp_grappler.reports import page
from gdp_grappler.reports import page_data
from gdp_grappler.reports import units

_PAGES = ('.html', '.htm')


def report(plans: placed_step.PlacedStep | Sequence[placed_step.PlacedStep],
           path: str | os.PathLike[str]) -> None:
  """Writes an HTML file that shows plans of a step and loads no other file.

    gdp_grappler.report(gdp_grappler.place(model, '2xP100'), 'report.html')

  Args:
    plans: Steps from `place` or `load_plan`, of one graph on one cluster. A
      single step is compared with the best placement on one device.
    path: The file, whose name ends in .html or .htm.

  Raises:
    PlanError: the plans are of different graphs or clusters, there is none, or
      one is no step.
    GdpError: plotly is not installed, the file cannot be written, or its name
      has another ending.
  """
  check_name(path)
  extras.require('A report', 'plotly')
  if isinstance(plans, placed_step.PlacedStep):
    plans = [plans]
  _check_same_step(plans)
  last = plans[-1]
  graph = last.graph
  runs = [
      _run(plan.step, name, plan.price())
      for name, plan in zip(_names(plans), plans)
  ]
  if len(plans) == 1:
    runs.insert(0, _on_one_device(last))
  data = page_data.page_data(graph, runs, last.reasons, _verdict(runs))
  files.write_atomically(
      path, page.html_page(f'{graph.name} on {last.step.cluster.name}', data))


def check_name(path: str | os.PathLike[str]) -> None:
  """Raises GdpError unless the name of a file is that of an HTML page."""
  if pathlib.Path(path).suffix.lower() not in _PAGES:
    raise errors.GdpError(
        f'Cannot write {os.fspath(path)}: a report is a page for the browser. '
        'End the name in .html; the browser prints it as PDF.')


def _names(plans: Sequence[placed_step.PlacedStep]) -> list[str]:
  """Returns a distinct name for each plan: its placer or its file's name."""
  short = [pathlib.Path(plan.placed_by).name for plan in plans]
  if len(set(short)) == len(short):
    return short
  return [f'{i + 1}. {plan.placed_by}' for i, plan in enumerate(plans)]


def _check_same_step(plans: Sequence[placed_step.PlacedStep]) -> None:
  if not isinstance(plans, collections.abc.Sequence):
    given_steps.check(plans=plans)
  if not plans:
    raise errors.PlanError('There is no plan to report. Give one or more.')
  for plan in plans:
    given_steps.check(plans=plan)
  kinds = {
      (plan.graph.fingerprint, plan.step.cluster.to_json()) for plan in plans
  }
  if len(kinds) > 1:
    raise errors.PlanError('The plans of a report are of one graph on one '
                           'cluster; these plans are of several graphs or '
                           'clusters. Write a report for each of them.')


def _on_one_device(plan: placed_step.PlacedStep) -> page_data.PageRun:
  return _run(plan.step, plan.where_alone,
              price_lib.price(plan.graph, plan.one_device, plan.simulator))


def _run(step: step_lib.Step, name: str,
         price: price_lib.Price) -> page_data.PageRun:
  layers = layering.Layering(step.graph, price.placement, price.schedule,
                             step.source)
  return page_data.PageRun(name, price, layering.table(layers.folded())[1:])


def _verdict(runs: Sequence[page_data.PageRun]) -> str:
  """Returns one sentence that compares the last run with the first."""
  before, after = runs[0], runs[-1]
  before_s = before.price.schedule.step_time_s
  after_s = after.price.schedule.step_time_s
  step = f'a step by {after.name} takes {units.ms(after_s)} (simulated)'
  if not after.price.evaluation.valid:
    said = f'{step}, but does not fit: a memory overflows'
  elif len(runs) == 1:
    said = step
  elif not before.price.evaluation.valid:
    said = f'{step} and fits, where {before.name} lacks the memory'
  elif after_s < before_s:
    said = (f'{step}, {before_s / after_s:.2f}x as fast as {before.name} '
            f'({units.ms(before_s)})')
  else:
    said = f'{step}, no faster than {before.name} ({units.ms(before_s)})'
  return f'{said[0].upper()}{said[1:]}.'
