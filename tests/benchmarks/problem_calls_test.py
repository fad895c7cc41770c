"""How often a problem goes from one module to another: the program."""

import importlib
import json
import pathlib
import types

import numpy as np
import pytest

from gdp_grappler.placers import annealing_placer
from helpers import graphs
from helpers import problems


@pytest.fixture(name='program')
def _program(monkeypatch) -> types.ModuleType:
  """Programs of `benchmarks` are installed nowhere."""
  monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2]))
  return importlib.import_module('benchmarks.problem_calls')


def test_arguments_and_results_count_once_for_each_call(program):
  problem = problems.make(graphs.chain(3))

  def run():
    annealing_placer.blocks(problem, np.random.default_rng(0))
    annealing_placer.affordable(problem, 1.)
    annealing_placer.evaluations_for(problem=problem)
    problem.deadline()  # A method of the problem itself.

  found = {
      call.function: count for call, count in program.calls_of(run).items()
  }
  assert found['blocks'] == found['affordable'] == 1
  assert found['evaluations_for'] == 1
  assert not {'Problem.deadline', 'deadline'} & {*found}
  assert program.calls_of(lambda: None) == {}


def test_a_problem_that_is_only_returned(program):
  step = program.reading.read_task('wavenet-2x18@tiny@2xP100', print)
  found = program.calls_of(step.problem)
  assert {call.function for call in found} == {'Step.problem'}


def test_a_search(program, capsys):
  assert program.main(
      ['--json', '--quiet', '--seconds=3', 'wavenet-2x18@tiny@2xP100']) == 0
  rows = json.loads(capsys.readouterr().out)
  functions = {row['function']: row['calls'] for row in rows}
  assert functions['DefaultPlacer.proposals'] == 1
  assert functions['search'] == 1
