"""Prints what placers make of networks that nearly fill the GPUs.

Run it from the repository, for example

  python -m benchmarks.tight_memory --fills .75 .98 --gpus 3 9 --json

Networks are those of `tests/helpers/tight_memory.py`: layers with heavy weights
(and optimizer state) that fill 60 to 98 % of the GPUs of a placement in blocks,
beside a host that is much slower. Steps are simulated. For each placer: its
step over that of METIS and over that of the local search, "out of memory" where
it found none that fits although the blocks do; null as JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from typing import Any

import numpy as np

from gdp_grappler import progress
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.reports import progress_line
from gdp_grappler.reports import tables
from tests.helpers import clusters
from tests.helpers import tight_memory

_FILLS, _NUM_GPUS = [.6, .75, .9, .98], [2, 3, 4, 6, 9, 14]
_METIS, _SEARCH = 'metis', 'local_search'
_PLACERS = ('m_topo', 'm_etf', 'm_sct', 'heft', 'single_device', _METIS,
            _SEARCH)
# What a placer may take longer than the local search.
_TARGET = 1.3


def _steps(problem: placer_lib.Problem, planted: np.ndarray,
           placers: list[str]) -> dict[str, dict[str, float]]:
  """Per placer its simulated step, infinite without memory, and its time."""
  result = {}
  for name in placers:
    start = time.perf_counter()
    placement = registry.create(name).place(problem)
    took_s = time.perf_counter() - start
    price = problem.evaluator.evaluate(problem.graph, placement)
    step_s = price.step_time_s if price.valid else math.inf
    result[name] = dict(step_s=step_s, placing_s=took_s)
  blocks = problem.evaluator.price_groups(problem.graph, planted[None])
  result['planted'] = dict(step_s=float(blocks.valid_seconds[0]), placing_s=0.)
  return result


def _row(case: tight_memory.Case, placers: list[str]) -> dict[str, Any]:
  costs = clusters.FixedCosts(case.seconds)
  problem = placer_lib.Problem(case.graph, case.cluster,
                               simulator.Simulator(case.cluster, costs))
  steps = _steps(problem, case.planted, placers)
  row: dict[str, Any] = dict(case=case.name, num_ops=case.graph.num_ops,
                             placers=steps)
  for other in (_METIS, _SEARCH):
    if other in steps:
      row[f'over {other}'] = {
          name: _ratio(own['step_s'], steps[other]['step_s'])
          for name, own in steps.items()
      }
  return row


def _ratio(own_s: float, other_s: float) -> float:
  """Infinite if only the first is out of memory, NaN if the other one is."""
  return round(own_s / other_s, 4) if math.isfinite(other_s) else math.nan


def _missed(rows: list[dict[str, Any]], name: str) -> str:
  """How often a placer missed each target, and by how much at worst."""
  own = np.array([row['placers'][name]['step_s'] for row in rows])
  texts = [f'out of memory {np.isinf(own).sum()}']
  for other, most in ((_METIS, 1.), (_SEARCH, _TARGET)):
    if f'over {other}' in rows[0]:
      ratios = np.array([row[f'over {other}'][name] for row in rows])
      missed = (ratios > most + 1e-9).sum()
      texts.append(f'over {most:g}x {other} {missed} '
                   f'({_summary(ratios[np.isfinite(ratios)])})')
  seconds = sum(row['placers'][name]['placing_s'] for row in rows)
  return f'{name}: of {len(rows)}, ' + ', '.join(texts) + f'; {seconds:.1f} s'


def _summary(ratios: np.ndarray) -> str:
  """Of the cases [n] in which both fit."""
  if not ratios.size:
    return 'never both in memory'
  return (f'worst {ratios.max():.2f}x, mean '
          f'{np.exp(np.log(ratios).mean()):.3f}x')


def _cell(step_s: float) -> str:
  return f'{1e3 * step_s:.1f}' if math.isfinite(step_s) else 'out of memory'


def _without_infinities(value: Any) -> Any:
  """With None for what JSON has no number for."""
  if isinstance(value, dict):
    return {key: _without_infinities(item) for key, item in value.items()}
  if isinstance(value, float) and not math.isfinite(value):
    return None
  return value


def main() -> None:
  """Runs the program."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--networks', nargs='*', choices=tight_memory.NETWORKS,
                      default=list(tight_memory.NETWORKS))
  parser.add_argument('--fills', type=float, nargs='*', default=_FILLS)
  parser.add_argument('--gpus', type=int, nargs='*', default=_NUM_GPUS)
  parser.add_argument('--placers', nargs='*', default=list(_PLACERS))
  parser.add_argument('--json', action='store_true')
  flags = parser.parse_args()
  cases = list(
      itertools.product(flags.networks, (True, False), flags.gpus, flags.fills))
  with progress_line.shown('tight_memory'):
    rows = progress.of_each(
        'placing', cases, lambda case: _row(
            tight_memory.case(case[0], case[2], case[3], case[1], clusters.
                              FixedCosts), flags.placers), lambda case: case[0])
  if flags.json:
    print(json.dumps([_without_infinities(row) for row in rows], indent=1))
    return
  shown = [('case', *flags.placers, 'planted')]
  for row in rows:
    shown.append((row['case'],
                  *(_cell(own['step_s']) for own in row['placers'].values())))
  print(tables.titled('Simulated steps, ms', shown))
  for name in flags.placers:
    print(tables.wrapped(_missed(rows, name)))


if __name__ == '__main__':
  main()
