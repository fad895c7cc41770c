"""What each lever brings: the program that says so."""

import dataclasses
import functools
import json
import time

import pytest

from gdp_grappler.placers import default_placer
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.memory import memory_packing
from gdp_grappler.placers.search.memory import memory_repair
from gdp_grappler.placers.search.moves import moves
from gdp_grappler.problems import reading
from helpers import benchmarks
from helpers import clusters
from helpers import graphs
from helpers import problems

levers = benchmarks.module('levers')


@pytest.fixture(name='problem', scope='module')
def _problem():
  step = reading.read_task('rnnlm-2@tiny@2xP100')
  simulator = step.simulator()
  return dataclasses.replace(step.problem(simulator), simulator=simulator,
                             time_budget_s=1., clock=time.process_time)


def test_each_lever_is_switched_off(capsys):
  assert levers.main([
      '--json', '--seconds=0.2', '--seeds=2', '--quiet',
      'wavenet-2x18@tiny@2xP100'
  ]) == 0
  rows = json.loads(capsys.readouterr().out)
  assert [row['seed'] for row in rows] == [0, 1]
  for row in rows:
    steps = {name: row[f'{name}_s'] for name in levers._WAYS}
    assert all(0 < step < 1 for step in steps.values())
    # A search begins with the anchors; edges differ by little.
    assert steps['all'] <= 1.02 * steps['search']


def test_levers_may_be_chosen(capsys):
  few = ['--seconds=.05', '--seeds=1', '--quiet', 'wavenet-2x18@tiny@2xP100']
  assert levers.main(['--json', '--levers=parts,compound', *few]) == 0
  row, = json.loads(capsys.readouterr().out)
  assert set(row) == {'task', 'seed', 'all_s', 'parts_s', 'compound_s'}
  assert levers.main(['--levers=compound', *few]) == 0
  out = capsys.readouterr().out
  assert 'no compound' in out and 'no parts' not in out


def test_a_lever_that_does_not_exist(capsys):
  with pytest.raises(SystemExit) as raised:
    levers.main(['--levers=luck', 'wavenet-2x18@tiny@2xP100'])
  assert raised.value.code == 2
  assert 'there is no lever "luck"' in capsys.readouterr().err


def test_a_graph_that_does_not_exist_is_said_before_any_search(
    capsys, monkeypatch):
  """It was said when its turn came, and what was found before was lost."""
  monkeypatch.setattr(levers, '_found', None)
  assert levers.main(
      ['--quiet', 'wavenet-2x18@tiny@2xP100', 'wavnet@tiny@2xP100']) == 2
  assert 'wavnet@tiny does not exist' in capsys.readouterr().err


@pytest.mark.parametrize('name', ['all', 'network', 'priorities'])
def test_orders_are_searched_for_where_priorities_are_a_lever(
    monkeypatch, problem, name):
  """It was the search first in, first out, whatever was switched off."""
  made = []
  stock = priority_annealing.PriorityAnnealing
  monkeypatch.setattr(
      priority_annealing, 'PriorityAnnealing', lambda *arguments:
      (made.append(arguments), stock(*arguments))[1])
  levers._found(problem, levers._WAYS[name])
  assert bool(made) == (name != 'priorities')
  for _, _, _, model, *_ in made:
    assert (model is None) == (name == 'network')


@pytest.mark.parametrize('name, are_short', [('all', True), ('short', False)])
def test_short_annealings_are_a_lever(monkeypatch, problem, name, are_short):
  ran = []
  stock = staged_search._StagedSearch._anneal_each
  monkeypatch.setattr(
      staged_search._StagedSearch, '_anneal_each', lambda *arguments:
      (ran.append(stock(*arguments)), ran[-1])[1])
  levers._found(problem, levers._WAYS[name])
  assert ran == [are_short]


@pytest.mark.parametrize('name, asks', [('all', True), ('policy', False),
                                        ('search', False)])
def test_the_policy_proposes_unless_it_is_switched_off(monkeypatch, problem,
                                                       name, asks):
  asked = []
  stock = move_policy.before_search
  monkeypatch.setattr(
      move_policy, 'before_search', lambda *arguments:
      (asked.append(arguments), stock(*arguments))[1])
  assert levers._found(problem, levers._WAYS[name])
  assert bool(asked) == asks


@pytest.mark.parametrize('name, kinds', [('all', True), ('coordinates', False)])
def test_no_move_is_by_coordinates_that_are_unknown(monkeypatch, problem, name,
                                                    kinds):
  drawn = []
  stock = moves.Moves

  def make(problem, *arguments):
    result = stock(problem, *arguments)
    drawn.append({
        kind for kind, share in zip(stock.kinds, result.shares.tolist())
        if share and kind.startswith('coordinate')
    })
    return result

  monkeypatch.setattr(moves, 'Moves', make)
  make.kinds = stock.kinds
  levers._found(problem, levers._WAYS[name])
  assert drawn and all(bool(found) == kinds for found in drawn)


def test_numbers_of_the_search_reach_its_annealings(monkeypatch, problem):
  """The stages kept the numbers of the time when their module was loaded."""
  seen = []
  stock = annealing.Annealing.price_batch

  def price_batch(self, *arguments):
    seen.append(self._config.compound)
    stock(self, *arguments)

  monkeypatch.setattr(annealing.Annealing, 'price_batch', price_batch)
  levers._found(problem, levers._WAYS['compound'])
  assert set(seen) == {0}


# Without anchors no start fits, and memories are packed.
@pytest.mark.parametrize('name, module, function, anchors', [
    ('packing', memory_packing, 'packed', ()),
    ('memory_repair', memory_repair.MemoryRepair, 'fitted', ('m_etf',)),
])
def test_memories_are_neither_repaired_nor_packed(monkeypatch, name, module,
                                                  function, anchors):
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
    made.clear()
    levers._found(
        problem,
        dataclasses.replace(
            levers._WAYS[way],
            placer=functools.partial(default_placer.DefaultPlacer,
                                     anchors=anchors, asks_moves=False)))
    assert any(made) == (way == 'all')
  assert levers.search_config.DEFAULT == levers.search_config.SearchConfig()
