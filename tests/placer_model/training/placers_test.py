"""GDP as placers; that it learns is told by `trainer_test`."""

import dataclasses
import pathlib

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.problems import reading
from helpers import clusters
from helpers import eager
from helpers import graphs
from helpers import problems
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib
from placer_model.training import placers
from placer_model.training import train_config
from placer_model.training import trainer as trainer_lib

# Quick to trace.
_NETWORK = config_lib.preset('paper').replace(hidden_units=32, graph_layers=0,
                                              transformer_layers=0,
                                              superposition=False)
_PAPER = config_lib.preset('paper').replace(graph_layers=1,
                                            transformer_layers=1)
_CONFIG = dataclasses.replace(train_config.preset('paper'), iterations=25,
                              rollouts=16, epochs=1, learning_rate=5e-3,
                              entropy_bonus=3e-3, temperature=0.)
_TYPES = ('MatMul', 'Conv2D', 'Tanh', 'Relu')
_LENGTH = 8
_OP_S = .01


@pytest.fixture(autouse=True)
def _eager(request):
  # What learns for long is traced.
  if request.function is test_network_parts_equal_chains:
    yield
    return
  with eager.functions():
    yield


@pytest.fixture(autouse=True)
def _small_network(monkeypatch):
  monkeypatch.setattr(config_lib, 'preset', lambda name: _NETWORK)


def _placer(**changes):
  return placers.GdpPlacer(config=dataclasses.replace(_CONFIG, **changes))


def _problem(types=_TYPES, param_bytes=100, **cluster):
  """Chains that know nothing of each other; a transfer costs as an op."""
  count = len(types) * _LENGTH
  edges = [(i, i + 1, 10_000_000) for i in range(count - 1) if (i + 1) % _LENGTH
          ]
  graph = graphs.make_graph(edges, count, op_types=np.repeat(types,
                                                             _LENGTH).tolist(),
                            param_bytes=np.full(count, param_bytes))
  seconds = np.tile((10 * _OP_S, _OP_S, _OP_S), (count, 1))
  return problems.make(
      graph,
      clusters.make_cluster(2, latency_s=0., bandwidth_bytes_per_s=1e9,
                            **cluster), seconds)


def test_returns_the_best_placement_it_sampled():
  problem = dataclasses.replace(_problem(), time_budget_s=0.)
  placement = _placer(iterations=10**9).place(problem)
  assert not placement.violations(problem.graph)
  sampled = _placer()._trainer(problem)
  assert problems.seconds_of(problem,
                             placement) == sampled.step().best_step_time_s


def test_the_best_that_is_shown_is_a_price(monkeypatch):
  """The progress line showed a price as if it were a step."""
  said = []
  monkeypatch.setattr(placers.progress, 'reached',
                      lambda share, text: said.append(text))
  _placer(iterations=1).place(_problem())
  assert said[-1].startswith('best price ')


def test_nothing_to_place():
  problem = problems.make(graphs.make_graph())
  for placer in (_placer(), placers.FineTunedPlacer('somewhere')):
    assert placer.place(problem).devices.shape == (0,)


def test_nothing_fits():
  with pytest.raises(errors.InfeasiblePlacementError, match='None of 33 sampl'):
    _placer(iterations=2).place(_problem(memory_bytes=50))


def test_network_parts_equal_chains(monkeypatch):
  """Chains that look alike get one device each, two on either.

  A network that sees features and neighbours alone gives all of them the same
  devices, and has only one device's step to gain from.
  """
  monkeypatch.setattr(config_lib, 'preset', lambda name: _PAPER)
  problem = _problem(types=('MatMul',) * 4)
  config = dataclasses.replace(train_config.preset('paper'), iterations=60)
  trainer = placers.GdpPlacer(config=config)._trainer(problem)
  assert trainer.reference_s == pytest.approx(32 * _OP_S)
  reports = [trainer.step() for _ in range(config.iterations)]
  assert trainer.say().step_time_s[0] < 20.5 * _OP_S
  assert trainer.state.best_step_time_s < 18.5 * _OP_S
  assert reports[-1].entropy < 0.5 * reports[0].entropy


def test_a_batch_learns_the_others_as_well(monkeypatch):
  read = []

  class Step:

    def problem(self):
      return _problem(types=('Tanh', 'Relu'))

  monkeypatch.setattr(reading, 'read_task',
                      lambda task, tell: read.append(task) or Step())
  placer = placers.BatchPlacer(('a@b',),
                               dataclasses.replace(_CONFIG, iterations=2))
  kept = []
  trainers = placer._trainers
  monkeypatch.setattr(placer, '_trainers',
                      lambda problem: kept.extend(trainers(problem)) or kept)
  problem = _problem()
  placement = placer.place(problem)
  assert not placement.violations(problem.graph)
  assert read == ['a@b']
  assert [t.state.iteration for t in kept] == [2, 2]
  assert all(t.state.seconds > 0 for t in kept)
  assert len({id(t.placer) for t in kept}) == 1
  assert placement.devices.shape == (problem.graph.num_ops,)


def test_a_batch_gives_the_graph_a_turn_however_short_the_time(monkeypatch):

  class Step:

    def problem(self):
      return _problem(types=('Tanh',))

  monkeypatch.setattr(reading, 'read_task', lambda task, tell: Step())
  problem = dataclasses.replace(_problem(), time_budget_s=0.)
  placement = placers.BatchPlacer(('a@b',), _CONFIG).place(problem)
  assert not placement.violations(problem.graph)


def test_of_a_time_budget_each_graph_of_a_batch_has_its_share(monkeypatch):

  class Step:

    def problem(self):
      return _problem(types=('Tanh',))

  monkeypatch.setattr(reading, 'read_task', lambda task, tell: Step())
  placer = placers.BatchPlacer(('a@b', 'c@d'), _CONFIG)
  kept = []
  trainers = placer._trainers
  monkeypatch.setattr(placer, '_trainers',
                      lambda problem: kept.extend(trainers(problem)) or kept)
  now = [0.]

  def step(self, unused_done):
    # On the graph that is asked for it takes three times as long.
    seconds = 3. if self is kept[0] else 1.
    now[0] += seconds
    self.state.seconds += seconds
    self.state.iteration += 1
    self.state.best_decisions = np.zeros(self.num_units, int)

  monkeypatch.setattr(trainer_lib.Trainer, 'step', step)
  placer.place(
      dataclasses.replace(_problem(), time_budget_s=90., clock=lambda: now[0]))
  assert [trainer.state.iteration for trainer in kept] == [10, 30, 30]


def _shares(monkeypatch, problem, **changes):
  """How much of a run each iteration was told to be over; they take 10 s each.

  The first takes 30 s, and is the only one in which something happens.
  """
  shares, now = [], [5.]
  step = trainer_lib.Trainer.step

  def fake(self, done):
    if not shares:
      step(self, done)
      now[0] += 20.
    else:
      self.state.iteration += 1
    now[0] += 10.
    shares.append(done)

  monkeypatch.setattr(trainer_lib.Trainer, 'step', fake)
  placers.GdpPlacer(config=dataclasses.replace(_CONFIG, **changes)).place(
      dataclasses.replace(problem, clock=lambda: now[0]))
  return shares


def test_what_anneals_has_the_time_that_the_first_iteration_leaves(monkeypatch):
  problem = dataclasses.replace(_problem(), time_budget_s=100.)
  assert _shares(monkeypatch, problem,
                 iterations=3) == pytest.approx([0, *(np.arange(7) / 7)])


def test_without_a_time_budget_iterations_say_what_is_over(monkeypatch):
  assert _shares(monkeypatch, _problem(), iterations=4) == [0, .25, .5, .75]


def test_fine_tuned_is_no_slower_than_one_device(monkeypatch):
  problem = _problem()
  slow = np.zeros(problem.graph.num_ops, int)
  monkeypatch.setattr(
      placers.GdpPlacer, 'place',
      lambda self, problem: placement_lib.Placement(slow, problem.cluster))
  placement = placers.FineTunedPlacer('somewhere').place(problem)
  assert problems.seconds_of(problem, placement) == pytest.approx(
      problem.graph.num_ops * _OP_S)


def test_fine_tuned_fits_where_nothing_sampled_does(monkeypatch):

  def nothing(self, problem):
    raise errors.InfeasiblePlacementError('None fits.')

  monkeypatch.setattr(placers.GdpPlacer, 'place', nothing)
  # No device holds all, two do.
  problem = _problem(param_bytes=10_000_000, memory_bytes=200_000_000)
  placement = placers.FineTunedPlacer('somewhere').place(problem)
  assert problem.evaluator.evaluate(problem.graph, placement).valid


@pytest.mark.parametrize('budget_s, steps', [(None, 3), (1e9, 3), (0., 1)])
def test_fine_tuning_goes_on_from_the_policy_for_so_many_steps(
    monkeypatch, budget_s, steps):
  learned = network_lib.PlacerNetwork(_NETWORK.replace(seed=7))
  loaded = []
  monkeypatch.setattr(export, 'load_network',
                      lambda folder: loaded.append(folder) or learned)
  placer = placers.FineTunedPlacer('somewhere',
                                   dataclasses.replace(_CONFIG, iterations=3))
  kept = []
  trainers = placer._trainers
  monkeypatch.setattr(placer, '_trainers',
                      lambda problem: kept.extend(trainers(problem)) or kept)
  # The clock stands: on a slow machine a minute is over after one step.
  placer.place(
      dataclasses.replace(_problem(), time_budget_s=budget_s, clock=lambda: 0.))
  trainer, = kept
  assert loaded == [pathlib.Path('somewhere').resolve()]
  assert trainer.placer is learned
  assert trainer.state.iteration == steps
  assert trainer.state.evaluations['greedy'] > 1  # Zero-shot.
