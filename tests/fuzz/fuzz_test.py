"""Runs the fuzz briefly, and checks that it notices broken rules."""

import dataclasses
import os
import pathlib
import pickle
import signal
import subprocess

import numpy as np
import pytest

from fuzz import __main__ as program
from fuzz import cases
from fuzz import rules
from fuzz import runs
from fuzz import strangers
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers.policy import policy_ops
from helpers import forked_calls
from helpers import hostile
from helpers import readers

_CASES = 15
_PLACERS = 'metis', 'm_etf'
# Families whose cases have a known placement that fits.
_PLANT = 'planted', 'layers', 'zero'


@pytest.fixture(scope='module', autouse=True)
def _forked():
  """Saves time: `make fuzz` starts a new process for each partitioning."""
  with forked_calls.partitioners():
    yield


@pytest.mark.parametrize('seed', range(_CASES))
def test_no_rule_is_broken(seed):
  report = runs.examine(seed, time_limit_s=0)
  assert not report.broken, '\n'.join(map(str, report.broken))
  assert report.files >= 4 * (not seed % 5)
  assert report.placements and report.checks > 2 * report.placements


def test_a_seed_is_one_case_and_all_families_have_their_turn():
  first, second = cases.make(3), cases.make(3)
  assert first.family == second.family and first.cluster == second.cluster
  assert first.graph.fingerprint == second.graph.fingerprint
  assert first.seconds.tolist() == second.seconds.tolist()
  assert {cases.make(seed).family for seed in range(210)} == set(cases.FAMILIES)


@pytest.mark.parametrize('harm, rule', [
    (lambda path: path.read_bytes()[1 << 40], 'one clear error'),
    (lambda path: subprocess.run(['true'], check=True), 'nothing runs'),
    (lambda path: pathlib.Path('/tmp/owned').write_text(''), 'nothing runs'),
    (lambda path: pathlib.Path('owned').write_text(''), 'nothing runs'),
    (lambda path: pickle.loads(pickle.dumps(pathlib.Path)), 'nothing runs'),
    (lambda path: signal.pause(), 'bounded time'),
])
def test_readers_that_do_more_than_read_are_noticed(monkeypatch, harm, rule):
  kind = list(readers.READERS)[1]
  strangers._good(kind)
  real = readers.READERS[kind]
  monkeypatch.setitem(readers.READERS, kind,
                      dataclasses.replace(real, read=harm))
  report = runs.examine(1, [runs.STRANGERS], time_limit_s=.2)
  assert {b.breach.rule for b in report.broken} == {rule}
  assert '--seed=1 --graphs=1 --placers=strangers' in str(report.broken[0])


def test_a_policy_that_is_let_in_is_noticed(monkeypatch):
  monkeypatch.setattr(policy_ops, 'OPS', policy_ops.OPS | {'WriteFile'})
  turn = list(hostile.SIDE_EFFECTS).index('WriteFile')
  report = runs.examine(10 * turn, [runs.STRANGERS], time_limit_s=0)
  assert [b.breach.rule for b in report.broken] == ['one clear error']


def test_what_was_planted_fits():
  fits = {}
  for family, (draw, _) in cases.FAMILIES.items():
    case = cases.Case(family, *draw(np.random.default_rng(1)))
    if case.planted is not None:
      prices = rules.Examiner(case, 0).problem.evaluator.price_groups(
          case.graph, case.planted[None])
      fits[family] = prices.valid.all()
  assert fits == dict.fromkeys(_PLANT, True)


class _Everywhere:
  """Places at random, and differently each time."""

  rng = np.random.default_rng(0)

  def place(self, problem):
    devices = self.rng.integers(problem.cluster.num_devices,
                                size=problem.graph.num_ops)
    return placement_lib.Placement(devices, problem.cluster)


class _Slowest:
  """Places all ops on the slowest device."""

  def place(self, problem):
    rows = one_device.on_each(problem.cluster, problem.allowed)
    worst = problem.evaluator.price_groups(problem.graph, rows).ranking()[-1]
    return placement_lib.from_groups(problem.graph, rows[worst],
                                     problem.cluster)


def _broken(monkeypatch, placer, wanted, count=60):
  monkeypatch.setattr(rules, 'create', lambda name: placer())
  found = set()
  for seed in range(0, count, 4):
    found |= {b.breach.rule for b in runs.examine(seed, ['heft']).broken}
  assert found >= wanted


def test_breaches_are_noticed(monkeypatch):
  _broken(monkeypatch, _Everywhere,
          {'legal', 'no_worse_than_one_device', 'deterministic'})
  _broken(monkeypatch, _Slowest, {'no_worse_than_one_device'})


@pytest.mark.parametrize('what, rule', [('raise', 'places'),
                                        ('wait', 'bounded time'),
                                        ('spin', 'bounded time')])
def test_errors_and_endless_loops_are_noticed(monkeypatch, what, rule):

  class Placer:

    def place(self, problem):
      if what == 'raise':
        raise ZeroDivisionError(problem.graph.name)
      while what == 'spin':
        pass
      signal.pause()

  monkeypatch.setattr(rules, 'create', lambda name: Placer())
  report = runs.examine(0, ['heft'], time_limit_s=.2)
  assert [b.breach.rule for b in report.broken] == [rule]
  assert '--seed=0 --graphs=1 --placers=heft' in str(report.broken[0])


def test_a_process_that_dies_costs_one_case(monkeypatch):
  real = runs.examine

  def examine(seed, placers):
    if seed == 6:
      os._exit(7)
    return real(seed, placers)

  monkeypatch.setattr(runs, 'examine', examine)
  reports = {r.seed: r for r in runs.run(range(4, 8), ['round_robin'], 1)}
  assert sorted(reports) == [4, 5, 6, 7]
  assert [b.breach.message for b in reports[6].broken] == ['exit code 7']
  assert not any(reports[seed].broken for seed in (4, 5, 7))


def test_a_run_that_was_killed_goes_on(monkeypatch, capsys, tmp_path):
  journal = tmp_path / 'journal'

  def run(graphs, placers='m_topo'):
    monkeypatch.setattr('sys.argv', [
        'fuzz', f'--graphs={graphs}', f'--placers={placers}', '--jobs=1',
        f'--journal={journal}'
    ])
    code = program.main()
    return code, capsys.readouterr().out

  monkeypatch.setattr(rules, 'create', lambda name: _Slowest())
  code, first = run(4)
  assert code == 1
  written = journal.read_text()
  journal.write_text(written[:-20])  # Killed while it wrote the last report.
  examined = []
  real = runs.run
  monkeypatch.setattr(
      runs, 'run', lambda seeds, *rest:
      (examined.extend(seeds), real(seeds, *rest))[1])
  code, again = run(4)
  assert code == 1 and len(examined) == 1
  # The second run repeats the broken rules of the journal.
  assert first.count('BROKEN') == again.count('BROKEN')
  assert run(6)[0] == 1 and examined[1:] == [4, 5]
  run(2, 'heft')  # Other placers are another run.
  assert examined[3:] == [0, 1]


@pytest.mark.parametrize('placer, code', [(None, 0), (_Slowest, 1)])
def test_the_program_ends_with_one_line_of_counts(monkeypatch, capsys, placer,
                                                  code):
  if placer:
    monkeypatch.setattr(rules, 'create', lambda name: placer())
  monkeypatch.setattr('sys.argv',
                      ['fuzz', '--graphs=6', '--placers=m_topo', '--jobs=2'])
  assert program.main() == code
  last = capsys.readouterr().out.splitlines()[-1]
  assert last.startswith('fuzz: 6 graphs, 6 placements, ')
  assert (', 0 broken;' in last) == (code == 0)


@pytest.mark.parametrize(
    'seed, placer',
    [
        (338, runs.STRANGERS),  # Python warned of a damaged text.
        (525, 'structured'),  # Exceeded memory, though a placement fits.
    ])
def test_what_was_broken_once_holds(seed, placer):
  assert not runs.examine(seed, (placer,)).broken
