"""Learning on graphs whose best placement brute force knows."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from helpers import eager
from helpers import toy_training
from placer_model.training import credit
from placer_model.training import exploration
from placer_model.training import train_config
from placer_model.training import trainer as trainer_lib

_PAPER = dataclasses.replace(train_config.preset('paper'), rollouts=16,
                             anneal=False, learning_rate=0.05, epochs=4,
                             entropy_bonus=3e-3, temperature=0.0)
_QUICK = dataclasses.replace(train_config.preset('default'), rollouts=8,
                             search_trials=16, learning_rate=0.01,
                             imitation_learning_rate=0.1, warm_search_trials=0,
                             warm_start_steps=20, distill_steps=60)
# Where it does not matter how well it learns.
_BRIEF = dataclasses.replace(_QUICK, epochs=1, warm_start_steps=3,
                             distill_steps=3)


@pytest.fixture(name='eager')
def _eager():
  with eager.functions():
    yield


def _trainer(environment, config, seed=0, starts=None):
  if starts is None:
    starts = np.where(environment.allowed[:, 1], 1, 0)[None]
  tf.keras.utils.set_random_seed(seed)
  return trainer_lib.Trainer(environment,
                             toy_training.TablePlacer(environment.allowed), {},
                             config, seed, starts,
                             reference_s=float(environment.num_units))


def _warm_up(trainer):
  for _ in trainer.warm_up():
    pass


def _run(trainer, iterations):
  return [trainer.step() for _ in range(iterations)]


@pytest.mark.parametrize('transfer_s', [0.3, 3.0])
def test_ppo_alone_learns_the_optimum(transfer_s):
  """Cheap transfers: spread the chain. Dear ones: one device is the best."""
  environment = toy_training.chain_environment(4, transfer_s=transfer_s)
  optimum = toy_training.best_by_brute_force(environment)
  config = dataclasses.replace(_PAPER, credit='rollout', epochs=4,
                               exploration='correlated', greedy=False,
                               rollouts=64, learning_rate=0.02,
                               entropy_bonus=0.03)
  trainer = _trainer(environment, config, starts=np.zeros((1, 4), np.int32))
  _warm_up(trainer)
  reports = _run(trainer, 80)
  # Not only seen by luck: the policy says it.
  assert trainer.distill().step_time_s[0] == pytest.approx(optimum)
  assert reports[-1].reward > reports[0].reward
  assert reports[-1].entropy < reports[0].entropy
  assert trainer.state.evaluations['search'] == 0


@pytest.mark.parametrize('transfer_s', [0.3, 3.0])
def test_credit_of_single_decisions_leads_to_the_optimum(transfer_s):
  environment = toy_training.chain_environment(4, transfer_s=transfer_s)
  optimum = toy_training.best_by_brute_force(environment)
  trainer = _trainer(environment, dataclasses.replace(_PAPER, rollouts=64))
  reports = _run(trainer, 30)
  assert trainer.say().step_time_s[0] == pytest.approx(optimum)
  assert reports[-1].entropy < reports[0].entropy


@pytest.mark.usefixtures('eager')
def test_one_rollout_is_the_likeliest_placement():
  config = dataclasses.replace(_PAPER, epochs=1, greedy=True)
  trainer = _trainer(toy_training.chain_environment(6), config)
  trainer.placer.table.assign(np.tile([0.0, 0.1, 0.0], (6, 1)))
  assert trainer.step().sample_step_time_s <= 6.0
  assert trainer.state.evaluations['policy'] == config.rollouts


_ANNEALED = dataclasses.replace(_BRIEF, exploration='levels', levels=(2, 4, 9),
                                anneal=True, iterations=6, search_trials=0,
                                last_rate=0.1)


@pytest.fixture
def drawn(monkeypatch):
  """Numbers of clusters that are drawn from, in order."""
  numbers = []
  draw = exploration.level_uniforms
  monkeypatch.setattr(
      exploration, 'level_uniforms', lambda clusters, *rest:
      (numbers.append(len(set(clusters))), draw(clusters, *rest))[1])
  return numbers


def _rate(trainer):
  return float(trainer.optimizers.ppo.learning_rate) / 0.01


@pytest.mark.usefixtures('eager')
def test_the_learning_rate_follows_the_iterations():
  trainer = _trainer(toy_training.chain_environment(9), _ANNEALED)
  rates = []
  for _ in range(8):
    trainer.step()
    rates.append(_rate(trainer))
  assert rates[0] == pytest.approx(1) and rates[3] == pytest.approx(0.55)
  assert rates[6] == rates[7] == pytest.approx(0.1)


@pytest.mark.usefixtures('eager')
def test_the_learning_rate_follows_the_time_where_it_is_given():
  trainer = _trainer(toy_training.chain_environment(9), _ANNEALED)
  trainer.step(0.5)
  assert _rate(trainer) == pytest.approx(0.55)
  trainer.step(1.)
  assert _rate(trainer) == pytest.approx(0.1)


@pytest.mark.usefixtures('eager')
def test_levels_become_finer_as_the_policy_becomes_certain(drawn):
  trainer = _trainer(toy_training.chain_environment(9), _ANNEALED)
  trainer.step()
  for sureness in (0., 3., 9.):
    trainer.placer.table.assign(np.tile([0., sureness, 0.], (9, 1)))
    trainer.step()
  assert drawn[0] == drawn[1] < drawn[2] < drawn[3] == 9


@pytest.mark.usefixtures('eager')
def test_without_annealing_there_are_single_units_alone(drawn):
  config = dataclasses.replace(_ANNEALED, anneal=False)
  _trainer(toy_training.chain_environment(9), config).step()
  assert drawn == [9]


@pytest.mark.usefixtures('eager')
def test_equal_devices_are_exchanged_before_credit_is_given(monkeypatch):
  """What draws a placement and its mirror image learns from both the same."""
  seen = []
  effects = credit.effects
  monkeypatch.setattr(
      credit, 'effects', lambda policy, decisions, *rest:
      (seen.append(decisions), effects(policy, decisions, *rest))[1])
  config = dataclasses.replace(_PAPER, epochs=1, exchange=True)
  trainer = _trainer(toy_training.chain_environment(6), config)
  trainer.placer.table.assign(np.tile([-9., 1., 0.], (6, 1)))
  trainer.step()
  ones = (seen[0] == 1).sum(axis=1)
  assert (ones >= 3).all() and set(seen[0].ravel()) == {1, 2}


@pytest.mark.usefixtures('eager')
def test_the_temperature_falls_by_the_same_factor_in_equal_times(monkeypatch):
  temperatures = []
  tempered = credit.tempered
  monkeypatch.setattr(
      credit, 'tempered', lambda *arguments:
      (temperatures.append(arguments[-1]), tempered(*arguments))[1])
  config = dataclasses.replace(_PAPER, epochs=1, anneal=True, temperature=2.,
                               last_temperature=0.01)
  trainer = _trainer(toy_training.chain_environment(4), config)
  for done in (0., 0.5, 1.):
    trainer.step(done)
  np.testing.assert_allclose(temperatures, [2., 0.2, 0.02])


@pytest.mark.usefixtures('eager')
@pytest.mark.parametrize('window, seen', [(1, [16] * 4), (3, [16, 32, 48, 48])])
def test_credit_looks_back_at_the_latest_rollouts(monkeypatch, window, seen):
  counts = []
  effects = credit.effects
  monkeypatch.setattr(
      credit, 'effects', lambda policy, decisions, *rest:
      (counts.append(len(decisions)), effects(policy, decisions, *rest))[1])
  trainer = _trainer(toy_training.chain_environment(4),
                     dataclasses.replace(_PAPER, epochs=1, window=window))
  _run(trainer, 4)
  assert counts == seen


def test_levers_find_the_optimum_of_a_longer_chain():
  environment = toy_training.chain_environment(9)
  optimum = toy_training.best_by_brute_force(environment)
  trainer = _trainer(environment, _QUICK)
  _warm_up(trainer)
  _run(trainer, 15)
  assert trainer.state.best_step_time_s == pytest.approx(optimum)
  assert trainer.distill().step_time_s[0] == pytest.approx(optimum)


def test_one_device_stays_the_best_if_it_is():
  environment = toy_training.chain_environment(6, transfer_s=100.0)
  trainer = _trainer(environment, _QUICK)
  _warm_up(trainer)
  _run(trainer, 5)
  assert trainer.state.best_origin == 'baseline'
  assert trainer.state.best_step_time_s == 6.0
  assert len(set(trainer.state.best_decisions)) == 1


@pytest.mark.usefixtures('eager')
def test_never_worse_than_what_it_starts_from():
  environment = toy_training.chain_environment(6)
  starts = np.array([[1, 1, 1, 2, 2, 2], [0, 1, 0, 1, 0, 1]])
  config = dataclasses.replace(_BRIEF, search_trials=0, distill_steps=0)
  trainer = _trainer(environment, config, starts=starts)
  _warm_up(trainer)
  assert trainer.state.best_step_time_s == 3.5
  _run(trainer, 2)
  assert trainer.state.best_step_time_s <= 3.5


@pytest.mark.usefixtures('eager')
def test_evaluations_are_counted_by_origin():
  environment = toy_training.chain_environment(6)
  trainer = _trainer(environment, _BRIEF)
  _warm_up(trainer)
  reports = _run(trainer, 3)
  counts = trainer.state.evaluations
  assert counts['baseline'] == 1
  assert counts['policy'] == 3 * 8
  assert 3 * 12 <= counts['search'] <= 3 * 16
  assert sum(counts.values()) == environment.evaluations
  assert reports[-1].evaluations == environment.evaluations


def test_warm_up_searches_before_it_imitates():
  environment = toy_training.chain_environment(9)
  config = dataclasses.replace(_QUICK, warm_search_trials=300, confidence=0.97,
                               warm_start_steps=60)
  trainer = _trainer(environment, config)
  _warm_up(trainer)
  optimum = toy_training.best_by_brute_force(environment)
  assert trainer.state.best_step_time_s == pytest.approx(optimum)
  assert trainer.state.best_origin == 'search'
  assert trainer.state.evaluations['policy'] == 0
  assert trainer.step().sample_step_time_s == pytest.approx(optimum)


def test_warm_up_goes_on_from_any_part(tmp_path):
  config = dataclasses.replace(_QUICK, warm_search_trials=600,
                               warm_start_steps=60)

  def fresh():
    return _trainer(toy_training.chain_environment(9), config)

  whole = fresh()
  parts = sum(1 for _ in whole.warm_up())
  assert parts == 1 + 3 + 3
  for stop in (1, 3, 5):
    first = fresh()
    warm_up = first.warm_up()
    for _ in range(stop):
      next(warm_up)
    path = first.checkpoint().save(str(tmp_path / f'ckpt{stop}'))
    second = fresh()
    second.checkpoint().restore(path).assert_existing_objects_matched()
    _warm_up(second)
    np.testing.assert_array_equal(second.placer.table, whole.placer.table)
    np.testing.assert_array_equal(second.state.best_decisions,
                                  whole.state.best_decisions)
    assert second.state.evaluations == whole.state.evaluations


@pytest.mark.usefixtures('eager')
def test_no_warm_up_after_the_first_iteration():
  """A run that had nothing to imitate at its start does not do so later."""
  trainer = _trainer(toy_training.chain_environment(6), _BRIEF)
  trainer.step()
  assert trainer.state.best_decisions is not None
  assert not list(trainer.warm_up())


@pytest.mark.usefixtures('eager')
def test_search_leaves_alone_what_cannot_move():
  environment = toy_training.chain_environment(4)
  features = dataclasses.replace(environment.features,
                                 allowed=np.eye(3, dtype=bool)[[1, 1, 2, 2]])
  environment.features = features
  trainer = _trainer(environment, _BRIEF, starts=np.array([[1, 1, 2, 2]]))
  _warm_up(trainer)
  _run(trainer, 2)
  np.testing.assert_array_equal(trainer.state.best_decisions, [1, 1, 2, 2])
  assert trainer.state.evaluations['search'] == 0


@pytest.mark.usefixtures('eager')
def test_nothing_fits():
  environment = toy_training.chain_environment(6, memory_bytes=50,
                                               param_bytes=100)
  trainer = _trainer(environment, _BRIEF)
  _warm_up(trainer)
  report = trainer.step()
  assert report.reward == -10
  assert report.valid_share == 0
  assert trainer.state.best_decisions is None
  assert not trainer.distill().valid.any()


def test_learns_to_fit_into_memory():
  """Two of six ops fit on each device."""
  environment = toy_training.chain_environment(6, memory_bytes=250,
                                               param_bytes=100)
  trainer = _trainer(environment, _PAPER)
  _warm_up(trainer)
  reports = _run(trainer, 60)
  assert reports[0].valid_share < 0.5
  assert reports[-1].valid_share > 0.8


def _without_time(reports):
  return [dataclasses.astuple(r) for r in reports]


@pytest.mark.usefixtures('eager')
def test_same_seed_same_run():
  runs = []
  for seed in (0, 0, 1):
    trainer = _trainer(toy_training.chain_environment(9), _BRIEF, seed)
    _warm_up(trainer)
    runs.append(_without_time(_run(trainer, 4)))
  assert runs[0] == runs[1]
  assert runs[0] != runs[2]
