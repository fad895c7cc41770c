"""Examines many cases in child processes, which may die."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import multiprocessing
from multiprocessing import connection
import signal
import time
import traceback
from typing import Callable, Iterator, Sequence

from absl import logging

from fuzz import cases
from fuzz import rules
from fuzz import strangers

# Intervals of the cases for slow placers: those that run other placers, those
# that search, and those that start a process for each placement.
_TURNS = {
    'local_search': 3, 'best_of': 7, 'structured': 3, 'gdp_no_network': 48,
    'gdp_held_out': 24, 'gdp_no_policy': 24, 'scotch': 50, 'min_cut': 50,
    'mt_kahypar': 50
}
# Interval of the cases with damaged and hostile files. It has no common divisor
# with the number of kinds of files, so that every kind has its turn.
_STRANGERS_TURN = 5
# Interval of the cases that are placed twice.
_TWICE = 4
# Limit of the processor seconds of a placement, factor of the wall-clock limit,
# and limit of a process that sends nothing. The last limit is for native code,
# which no alarm interrupts.
TIME_LIMIT_S, _PATIENCE, _SILENT_S = 120., 15, 7200
# Stands among the names of placers for damaged and hostile files.
STRANGERS = 'strangers'


@dataclasses.dataclass(frozen=True)
class Broken:
  """A broken rule and the placer that broke the rule."""

  seed: int
  family: str
  placer: str
  breach: rules.Breach

  def __str__(self) -> str:
    return (f'BROKEN {self.breach.rule}: {self.placer} on {self.family}: '
            f'{self.breach.message}\n  again: python -m fuzz --seed={self.seed}'
            ' --graphs=1' +
            (f' --placers={self.placer}' if self.placer != 'any' else ''))


@dataclasses.dataclass(frozen=True)
class Report:
  """The result of one case.

  Attributes:
    seed: Seed of the case.
    placements: Number of placements that were made.
    checks: Number of checks of rules.
    broken: Rules that were broken.
    slowest_s: Seconds of the slowest placer, its checks included.
    slowest: Name of this placer.
    took_s: Seconds of the whole case.
    files: Number of damaged and hostile files that were read.
  """

  seed: int
  placements: int
  checks: int
  broken: tuple[Broken, ...]
  slowest_s: float = 0.
  slowest: str = ''
  took_s: float = 0.
  files: int = 0


def examine(seed: int, placers: Sequence[str] = (),
            time_limit_s: float = TIME_LIMIT_S) -> Report:
  """Checks all placers on the case of a seed.

  Args:
    seed: Seed of the case.
    placers: Names of placers, or `STRANGERS`. By default all placers; slow
      placers take part in few cases only.
    time_limit_s: Limit of the processor seconds of each placer, which only
      Python code notices; 0 for no limit.
  """
  began = time.monotonic()
  names = placers or _due(seed)
  broken, took_s, checks = [], {}, 0
  if set(names) - {STRANGERS}:
    case = cases.make(seed)
    examiner = rules.Examiner(case, seed)
    for name in names:
      if name == STRANGERS or not examiner.suits(name):
        continue
      start = time.monotonic()
      for breach in _breaches(
          functools.partial(examiner.breaches, name, seed % _TWICE == 0),
          time_limit_s):
        broken.append(Broken(seed, case.family, name, breach))
      took_s[name] = time.monotonic() - start
    checks = examiner.checks
  slowest = max(took_s, key=took_s.__getitem__, default='')
  tried: list[None] = []
  if STRANGERS in names:
    broken += [
        Broken(seed, 'files', STRANGERS, breach) for breach in _breaches(
            lambda: strangers.breaches(seed, lambda: tried.append(None)),
            time_limit_s)
    ]
  return Report(seed, len(took_s), checks, tuple(broken),
                took_s.get(slowest, 0.), slowest,
                time.monotonic() - began, len(tried))


def _due(seed: int) -> list[str]:
  strangers_due = [] if seed % _STRANGERS_TURN else [STRANGERS]
  return [name for name in rules.names() if not seed % _TURNS.get(name, 1)
         ] + strangers_due


def _breaches(found: Callable[[], Iterator[rules.Breach]],
              time_limit_s: float) -> list[rules.Breach]:
  try:
    with _limited(time_limit_s):
      return list(found())
  except TimeoutError:
    return [rules.Breach('bounded time', f'more than {time_limit_s:g} s')]
  except Exception as error:  # Any exception of a placer is a breach.
    where = traceback.extract_tb(error.__traceback__)[-1]
    return [
        rules.Breach(
            'places', f'{type(error).__name__}: {error} '
            f'({where.filename}:{where.lineno})')
    ]


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
  """Ends the work in the context after a number of processor seconds.

  Work that waits, or that gets no processor, ends after `_PATIENCE` times this
  number of seconds.
  """

  def late(number: int, frame: object) -> None:
    raise TimeoutError

  clocks = {
      signal.ITIMER_PROF: (signal.SIGPROF, seconds),
      signal.ITIMER_REAL: (signal.SIGALRM, _PATIENCE * seconds)
  }
  numbers = [number for number, _ in clocks.values()]
  before = {number: signal.signal(number, late) for number in numbers}
  for clock, (_, limit_s) in clocks.items():
    signal.setitimer(clock, limit_s)
  try:
    yield
  finally:
    for clock in clocks:
      signal.setitimer(clock, 0)
    for number, handler in before.items():
      signal.signal(number, handler)


def run(seeds: Sequence[int], placers: Sequence[str],
        jobs: int) -> Iterator[Report]:
  """Examines cases in several processes, and yields each report at once."""
  children = [
      _Child(list(seeds[i::jobs]), placers)
      for i in range(min(jobs, len(seeds)))
  ]
  while children:
    ready = connection.wait([child.reports for child in children], _SILENT_S)
    if not ready:
      children[0].kill()
    for child in [child for child in children if child.reports in ready]:
      report = child.next()
      if report is not None:
        yield report
      if not child.left:
        child.end()
        children.remove(child)


class _Child:
  """A process that examines cases one after the other.

  Attributes:
    left: Seeds whose reports have not arrived.
    reports: Connection for the reports.
  """

  def __init__(self, left: list[int], placers: Sequence[str]) -> None:
    self.left, self._placers = left, placers
    self._start()

  def next(self) -> Report | None:
    """Returns the next report. Replaces a process that died, and reports it."""
    try:
      report: Report = self.reports.recv()
    except EOFError:
      if not self.left:
        return None
      self.end()
      died = rules.Breach('lives', f'exit code {self._process.exitcode}')
      report = Report(self.left[0], 0, 1,
                      (Broken(self.left[0], 'any', 'any', died),))
      self.left.pop(0)
      self._start()
      return report
    self.left.remove(report.seed)
    return report

  def kill(self) -> None:
    """Ends the process, whose current case is lost."""
    self._process.kill()

  def end(self) -> None:
    """Waits for the process."""
    self._process.join()
    self.reports.close()

  def _start(self) -> None:
    context = multiprocessing.get_context('fork')
    self.reports, theirs = context.Pipe(duplex=False)
    self._process = context.Process(target=_examine_all,
                                    args=(self.left, self._placers, theirs))
    self._process.start()
    theirs.close()


def _examine_all(seeds: list[int], placers: Sequence[str],
                 reports: connection.Connection) -> None:
  logging.set_verbosity(logging.ERROR)
  for seed in seeds:
    reports.send(examine(seed, placers))
