"""Results of anybody are told from those of gdp_bench."""

from __future__ import annotations

import copy
import io
import random
from typing import Any

import pytest
import rich.console

from helpers import bench_results
from placer_model.benchmark import report
from placer_model.benchmark import results_shape
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import summary
from placer_model.benchmark import tables

_CELL = bench_results.cell
_ODD = (None, '\x1b[31m', 7, -1, 1e300, float('nan'), [[]], {'a': 1}, True, 0)


def _results() -> dict[str, Any]:
  curve = [[1, .5, 3.], [40, 90., 1.2]]
  infeasible = {'status': 'infeasible', 'message': 'None\nfits.'}
  return copy.deepcopy(
      report.results(settings_lib.Settings(), 'gdp_bench\n--x', [
          bench_results.task(metis=_CELL(1.25, curve=curve),
                             gpu_only=_CELL(None)),
          bench_results.task('lost@cpu', metis=bench_results.failure('gone'),
                             random=infeasible)
      ]))


def _places(value: Any) -> list[tuple[Any, Any]]:
  """Every value inside one: what holds it, and by which name."""
  if isinstance(value, dict):
    inner = list(value)
  else:
    inner = list(range(len(value))) if isinstance(value, list) else []
  return [(value, name) for name in inner
         ] + [place for name in inner for place in _places(value[name])]


def test_ours_are_taken():
  assert not results_shape.fault(_results())


@pytest.mark.parametrize('change, said', [
    (lambda r: r.pop('tasks'), 'has no "tasks"'),
    (lambda r: r['settings'].update(limit=1), 'does not know'),
    (lambda r: r['settings'].update(reward='x'), 'is no kind of reward'),
    (lambda r: r['settings'].update(clock='x'), 'is no clock'),
    (lambda r: r['tasks'][0].update(name='\x1b[31m'), 'cannot be printed'),
    (lambda r: r['tasks'][0].update(file_name='../x'), 'is a path'),
    (lambda r: r['tasks'][0].pop('work_s'), 'has no "work_s"'),
    (lambda r: r['tasks'][0]['cells'].update({'\x1b': {}}), 'printed'),
    (lambda r: r['tasks'][0]['cells']['metis'].update(status='x'), 'status'),
    (lambda r: r['tasks'][0]['cells']['metis'].update(settings={'jobs': 'x'}),
     '/cells/metis/settings/jobs is no whole number'),
    (lambda r: r['tasks'][0]['cells']['metis']['limits'].update(
        busiest_hosted_s='x'), '/limits/busiest_hosted_s is no number'),
    (lambda r: r['tasks'][0]['cells']['metis'].update(step_time_s=None),
     '/tasks/0/cells/metis/step_time_s is no number'),
    (lambda r: r['tasks'][0]['cells']['metis']['curve'].append([1]),
     'is no point'),
    (lambda r: r['tasks'][0]['cells']['metis']['peak_bytes'].clear(),
     'are not those'),
])
def test_what_is_wrong_is_said(change, said):
  results = _results()
  change(results)
  assert said in results_shape.fault(results)


@pytest.mark.parametrize('seed', range(3))
def test_what_is_not_refused_can_be_shown(seed):
  rng = random.Random(seed)
  console = rich.console.Console(file=io.StringIO())
  for number in range(len(_places(_results()))):
    for odd in (*rng.sample(_ODD, 5), _results):
      results = _results()
      holder, name = _places(results)[number]
      if odd is _results:
        del holder[name]
      else:
        holder[name] = odd
      if results_shape.fault(results):
        continue
      settings = settings_lib.Settings.from_json(results['settings'])
      report.index(settings, results['command'], results['tasks'], [], False)
      text = tables.everything(results['tasks']).to_markdown()
      assert '\x1b' not in text
      summary.show(results, 'folder', console)
