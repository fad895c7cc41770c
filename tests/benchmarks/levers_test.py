"""What each lever brings: the program that says so."""

import contextlib
import dataclasses
import importlib
import io
import json
import pathlib
import types
from typing import Iterator

import numpy as np
import pytest

from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search.memory import memory_packing
from gdp_grappler.placers.search.memory import memory_repair
from helpers import clusters
from helpers import graphs
from helpers import problems


@pytest.fixture(name='program', scope='module')
def _program() -> Iterator[types.ModuleType]:
  """Programs of `benchmarks` are installed nowhere."""
  with pytest.MonkeyPatch.context() as patches:
    patches.syspath_prepend(str(pathlib.Path(__file__).parents[2]))
    yield importlib.import_module('benchmarks.levers')


@pytest.fixture(name='run', scope='module')
def _run(program):
  """Rows of two seeds, and the arguments of annealings with priorities."""
  made, out = [], io.StringIO()
  stock = priority_annealing.PriorityAnnealing
  with pytest.MonkeyPatch.context() as patches, contextlib.redirect_stdout(out):
    patches.setattr(
        priority_annealing, 'PriorityAnnealing', lambda *arguments:
        (made.append(arguments), stock(*arguments))[1])
    assert program.main([
        '--json', '--seconds=0.1', '--seeds=2', '--quiet',
        'wavenet-2x18@tiny@2xP100'
    ]) == 0
  return json.loads(out.getvalue()), made


def test_each_lever_is_switched_off(program, run):
  rows, _ = run
  assert [row['seed'] for row in rows] == [0, 1]
  for row in rows:
    steps = {name: row[f'{name}_s'] for name in program._WAYS}
    assert all(0 < step < 1 for step in steps.values())
    # A search begins with the anchors; edges differ by little.
    assert steps['all'] <= 1.02 * steps['search']
  assert len({row['search_s'] for row in rows}) == 1


def test_levers_may_be_chosen(program, capsys):
  few = ['--seconds=.05', '--seeds=1', '--quiet', 'wavenet-2x18@tiny@2xP100']
  assert program.main(['--json', '--levers=parts,rescheduling', *few]) == 0
  row, = json.loads(capsys.readouterr().out)
  assert set(row) == {'task', 'seed', 'all_s', 'parts_s', 'rescheduling_s'}
  assert program.main(['--levers=rescheduling', *few]) == 0
  out = capsys.readouterr().out
  assert 'no rescheduling' in out and 'no parts' not in out


def test_a_lever_that_does_not_exist(program, capsys):
  with pytest.raises(SystemExit) as raised:
    program.main(['--levers=luck', 'wavenet-2x18@tiny@2xP100'])
  assert raised.value.code == 2
  assert 'there is no lever "luck"' in capsys.readouterr().err


def test_a_graph_that_does_not_exist_is_said_before_any_search(
    program, capsys, monkeypatch):
  """It was said when its turn came, and what was found before was lost."""
  monkeypatch.setattr(program, '_found', None)
  assert program.main(
      ['--quiet', 'wavenet-2x18@tiny@2xP100', 'wavnet@tiny@2xP100']) == 2
  assert 'wavnet@tiny does not exist' in capsys.readouterr().err


def test_orders_are_searched_for_where_priorities_are_a_lever(program, run):
  """It was the search first in, first out, whatever was switched off."""
  _, made = run
  # With all levers, and without each but priorities and the search.
  assert len(made) == 2 * (len(program._WAYS) - 2)
  models = [model for _, _, _, model, *_ in made]
  assert models[1] is None and models[2].draws == 1


def test_the_policy_proposes_unless_it_is_switched_off(program, monkeypatch):
  asked = []
  stock = program.move_policy.before_search

  def ask(*arguments):
    result = stock(*arguments)
    asked.append(result is not None)
    return result

  monkeypatch.setattr(program.move_policy, 'before_search', ask)
  problem = problems.make(graphs.random_graph(0, 30), clusters.make_cluster(2))
  for name, count in (('all', 1), ('policy', 0), ('search', 0)):
    asked.clear()
    levers = program._WAYS[name]
    proposed = program._proposed(problem, levers.config.fit)
    assert program._found(problem, proposed, levers, 1.,
                          np.random.default_rng(0))
    assert asked == [True] * count


@pytest.mark.parametrize('name, module, function', [
    ('packing', memory_packing, 'packed'),
    ('memory_repair', memory_repair.MemoryRepair, 'fitted'),
])
def test_memories_are_neither_repaired_nor_packed(program, monkeypatch, name,
                                                  module, function):
  """Neither by anchors nor by the search; afterwards they are again."""
  made = []
  stock = getattr(module, function)

  def counted(*arguments):
    result = stock(*arguments)
    made.append(len(result))
    return result

  monkeypatch.setattr(module, function, counted)
  # Weights that fill two GPUs to 97 %, with the CPU out of bounds.
  graph = graphs.chain(8, 0, param_bytes=[55, 16, 9, 9, 31, 17, 24, 33],
                       allowed_types=[[False, True]] * 8)
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=100))
  for way in (name, 'all'):
    levers = program._WAYS[way]
    made.clear()
    proposed = program._proposed(problem, levers.config.fit)
    with program._by_default(levers.config.fit):
      # Anchors may fit where single devices do not.
      program._found(problem, proposed,
                     dataclasses.replace(levers, anchors=False), .1,
                     np.random.default_rng(0))
    assert any(made) == (way == 'all')
  assert program.search_config.DEFAULT == program.search_config.SearchConfig()
