"""One graph, one cluster, one policy: rollouts, updates, the best placement.

Reads top to bottom: what an iteration does is `Trainer.step`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import Callable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers.policy import policy_decoding
from placer_model.training import agent as agent_lib
from placer_model.training import credit
from placer_model.training import divergences
from placer_model.training import environment as environment_lib
from placer_model.training import equal_devices
from placer_model.training import exploration
from placer_model.training import imitation
from placer_model.training import local_search
from placer_model.training import optimizers as optimizers_lib
from placer_model.training import reward
from placer_model.training import run_state
from placer_model.training import train_config

# Gradient steps of imitation, and trials of search, between two chances to
# stop.
_CHUNK = 20
_WARM_TRIALS = 256
# Tells the random numbers of the warm-up from those of the iterations.
_WARM_STREAM = 1 << 32
# Of the learning rate of imitation: within iterations it corrects, not leads.
_SELF_IMITATION_SHARE = 0.1
# Of a placement that the policy does not know of.
_LEAST_PROBABILITY = 1e-4
# Where the policy is certain; its logarithm is finite.
_LEAST_ODDS = 1e-30
# Of the best placement beside the policy's probabilities.
_SAY_OF_BEST = .1


@dataclasses.dataclass(frozen=True)
class Report:
  """What one iteration was like.

  Attributes:
    iteration: Its number, from 1.
    reward: Mean over the K rollouts.
    valid_share: Of the K rollouts.
    sample_step_time_s: Of the best rollout; infinite if all are invalid.
    best_step_time_s: Of the best placement of the run.
    evaluations: Placements priced in the run.
    entropy: Nats per decision, before the update.
    kl: Mean divergence of the updated from the sampled policy per decision.
    clip_fraction: Decisions whose ratio left the clipping range.
    loss: PPO's.
    decisions: [D], how many of the K x M sampled decisions were each device.
  """

  iteration: int
  reward: float
  valid_share: float
  sample_step_time_s: float
  best_step_time_s: float
  evaluations: int
  entropy: float
  kl: float
  clip_fraction: float
  loss: float
  decisions: tuple[int, ...]


class Trainer:
  """Trains a placer on one graph.

  Attributes:
    placer: What learns.
    state: What is remembered, see `run_state.RunState`.
    reference_s: Run time of the best baseline, the unit of the reward.
    optimizers: Of the placer's weights.
  """

  def __init__(self, environment: environment_lib.Environment,
               placer: tf.keras.layers.Layer, features: Mapping[str, tf.Tensor],
               config: train_config.TrainConfig, seed: int,
               baselines: np.ndarray, reference_s: float,
               optimizers: optimizers_lib.Optimizers | None = None) -> None:
    """Prepares a run; nothing is priced or learned yet.

    Args:
      environment: Prices decisions on M units.
      placer: Called with `features`, gives masked logits [M, D].
      features: `environment.features` as the placer takes them.
      config: All knobs.
      seed: Of the samples; the placer brings its own initial weights.
      baselines: int [B, M], placements that the run starts from.
      reference_s: Run time of the best baseline.
      optimizers: Of the placer; None makes some.
    """
    placer(features)  # Creates the weights.
    self.state = run_state.RunState(environment.allowed)
    self.reference_s = reference_s
    self._environment, self._config, self._seed = environment, config, seed
    self.placer = placer
    self._baselines = baselines
    self.optimizers = optimizers or optimizers_lib.Optimizers.make(config)
    self.optimizers.build(placer.trainable_variables)
    self._agent = agent_lib.PlacementAgent(placer, features,
                                           environment.num_units,
                                           environment.cluster.num_devices,
                                           config, self.optimizers.ppo)
    self._imitation = imitation.Imitation(placer, features, environment.allowed,
                                          config.imitation_learning_rate,
                                          self.optimizers.imitation)
    self._neighbours = exploration.Neighbours(environment.num_units,
                                              environment.features.edges,
                                              environment.features.edge_bytes)
    self._search = local_search.LocalSearch(environment, self._neighbours)
    self._twins: list[tuple[int, ...]] = []
    if config.exchange:
      self._twins = equal_devices.twins(environment.cluster,
                                        environment.allowed)
    self._done = 0.
    self._levels: list[np.ndarray] = []
    if config.exploration == 'levels':
      self._levels = exploration.levels(environment, config.levels)

  def checkpoint(self) -> tf.train.Checkpoint:
    """All that a run has to remember in order to go on exactly."""
    return tf.train.Checkpoint(placer=self.placer, state=self.state,
                               ppo_optimizer=self.optimizers.ppo,
                               imitation_optimizer=self.optimizers.imitation)

  @property
  def num_units(self) -> int:
    """M."""
    return self._environment.num_units

  @property
  def share(self) -> float:
    """From 0 to 1, how many of the iterations are over."""
    iterations = self._config.iterations
    return min(self.state.iteration / iterations, 1.) if iterations else 1.

  def warm_up(self) -> Iterator[None]:
    """What comes before the first rollout, in parts of a second or less.

    Prices the baselines, searches around the best, and imitates what came of
    it. The state says how far it is: between any two parts a checkpoint may be
    taken, from which the rest goes on exactly.
    """
    config, state = self._config, self.state
    if state.iteration:
      return
    if not state.evaluations['baseline']:
      with self._clock():
        self._price(self._baselines, 'baseline')
      yield
    while state.warm_trials < config.warm_search_trials and self._can_search():
      with self._clock():
        self._look_around(
            _WARM_TRIALS,
            np.random.default_rng([self._seed, _WARM_STREAM,
                                   state.warm_trials]))
        state.warm_trials += _WARM_TRIALS
      yield
    while state.warm_steps < config.warm_start_steps and self._knows_best():
      with self._clock():
        self._imitation.slow_down(1
                                  - state.warm_steps / config.warm_start_steps)
        self._imitate(_CHUNK)
        state.warm_steps += _CHUNK
      yield

  def step(self, done: float | None = None) -> Report:
    """One iteration: rollouts, PPO, local search, self-imitation.

    Args:
      done: Share of the run, from 0 to 1, that is over, by which things anneal;
        None: that of its iterations.
    """
    with self._clock():
      self._done = self.share if done is None else done
      rng = np.random.default_rng([self._seed, self.state.iteration])
      self._agent.slow_down(self._rate)
      probabilities = self._agent.probabilities()
      trials = self._price(self._sample(probabilities, rng), 'policy')
      rewards, losses = self._learn(probabilities, trials)
      kl = divergences.divergence(probabilities, self._agent.probabilities())
      if self._knows_best():
        self._look_around(self._config.search_trials, rng)
        self._imitation.slow_down(_SELF_IMITATION_SHARE)
        self._imitate(self._config.self_imitation_steps)
      self.state.iteration += 1
    return Report(iteration=self.state.iteration, reward=float(rewards.mean()),
                  valid_share=float(trials.valid.mean()),
                  sample_step_time_s=float(trials.step_time_s.min()),
                  best_step_time_s=self.state.best_step_time_s,
                  evaluations=self.state.total_evaluations,
                  entropy=divergences.entropy(probabilities), kl=kl,
                  decisions=_counts(trials.decisions,
                                    probabilities.shape[1]), **losses)

  def distill(
      self, stopped: Callable[[],
                              bool] = lambda: False) -> environment_lib.Trials:
    """Makes the policy say the best placement; returns what it says, priced.

    The learning rate falls to zero, and the weights whose likeliest placement
    is fastest are kept. Not part of what checkpoints hold: a resumed run goes
    on from the policy as PPO left it.

    Args:
      stopped: Whether there is no time left, asked every few steps.
    """
    said = self.say()
    weights = self.placer.get_weights()
    for done in range(0, self._config.distill_steps, _CHUNK):
      if stopped() or not self._knows_best() or (
          said.step_time_s[0] <= self.state.best_step_time_s):
        break
      self._imitation.slow_down(1 - done / self._config.distill_steps)
      self._imitate(_CHUNK)
      now = self.say()
      if now.step_time_s[0] < said.step_time_s[0]:
        said, weights = now, self.placer.get_weights()
    self.placer.set_weights(weights)
    return said

  def say(self) -> environment_lib.Trials:
    """The likeliest placement of the policy, priced."""
    return self._price(self._imitation.greedy()[None], 'greedy')

  def say_also(self, sets: Sequence[np.ndarray]) -> environment_lib.Trials:
    """All placements that the policy's odds may stand for, priced.

    Args:
      sets: Of `policy_decoding.sizes`, int [N] each; the last are the M units.
    """
    odds = np.maximum(self._agent.probabilities(), _LEAST_ODDS)
    said = np.where(self._environment.allowed, np.log(odds), -np.inf)
    return self._price(
        policy_decoding.decisions(said, sets, self._environment.op_seconds,
                                  self._seed), 'greedy')

  def best_placement(self) -> placement_lib.Placement:
    """The best valid placement; there must be one."""
    return self.placement(self._best())

  def placement(self, decisions: np.ndarray) -> placement_lib.Placement:
    """What int [M] decisions stand for."""
    return self._environment.placement(decisions)

  def _sample(self, probabilities: np.ndarray,
              rng: np.random.Generator) -> np.ndarray:
    """int32 [K, M]."""
    decisions = exploration.choose(probabilities,
                                   self._uniforms(probabilities, rng), rng)
    if self._config.greedy:
      decisions[0] = probabilities.argmax(axis=1)
    return decisions

  def _uniforms(self, probabilities: np.ndarray,
                rng: np.random.Generator) -> np.ndarray:
    """float64 [K, M]."""
    rollouts = self._config.rollouts
    if self._config.exploration == 'correlated':
      return exploration.correlated_uniforms(self._neighbours, rollouts, rng)
    return exploration.level_uniforms(self._level(probabilities), rollouts, rng)

  def _level(self, probabilities: np.ndarray) -> np.ndarray:
    """int [M], the clusters of the finest level that is due.

    The more certain a policy, the smaller what it may draw by itself: in no
    rollout is there much more chance than in the first ones.
    """
    if not self._config.anneal:
      return self._levels[-1]
    nats = [exploration.nats(probabilities, level) for level in self._levels]
    if not self.state.iteration:
      self.state.most_nats = self._config.chance * nats[0]
    due = [i for i, n in enumerate(nats) if n <= self.state.most_nats]
    return self._levels[max(due, default=0)]

  @property
  def _rate(self) -> float:
    """Share of the learning rate and of the temperature that is left."""
    if not self._config.anneal:
      return 1.
    return 1 - (1 - self._config.last_rate) * self._annealed

  @property
  def _temperature(self) -> float:
    config = self._config
    return config.temperature * config.last_temperature**self._annealed

  @property
  def _annealed(self) -> float:
    """From 0 to 1, how much of what anneals is over."""
    return self._done if self._config.anneal else 1.

  def _learn(
      self, probabilities: np.ndarray,
      trials: environment_lib.Trials) -> tuple[np.ndarray, dict[str, float]]:
    rewards = reward.rewards(trials.step_time_s, trials.valid, self.reference_s)
    if self._config.credit == 'unit':
      return rewards, self._agent.train_each(
          probabilities, self._credited(probabilities, trials.decisions,
                                        rewards))
    mean = reward.MeanOfPreviousTrials(self.state.reward_count,
                                       self.state.reward_total)
    advantages = mean.advantages(rewards)
    self.state.reward_count, self.state.reward_total = mean.count, mean.total
    losses = self._agent.train(probabilities, trials.decisions, rewards,
                               advantages)
    return rewards, losses

  def _credited(self, probabilities: np.ndarray, decisions: np.ndarray,
                rewards: np.ndarray) -> np.ndarray:
    """float64 [M, D], what each decision is worth, by the latest rollouts."""
    config, state = self._config, self.state
    seen = [*state.recent, (decisions, rewards)]
    state.recent = seen[1 - config.window:] if config.window > 1 else []
    drawn, earned = (np.concatenate(parts) for parts in zip(*seen))
    if self._twins:
      drawn = self._aligned(probabilities, drawn)
    found = credit.effects(probabilities, drawn, credit.scores(earned),
                           config.ridge)
    return credit.tempered(probabilities, found, self._temperature)

  def _aligned(self, probabilities: np.ndarray,
               decisions: np.ndarray) -> np.ndarray:
    """int32 [K, M], equal devices exchanged as the policy likes it best.

    The best placement has a say, so that rollouts agree with each other while
    the policy is undecided.
    """
    says = np.maximum(probabilities, _LEAST_PROBABILITY)
    if self._knows_best():
      best, = equal_devices.aligned(self._best()[None], np.log(says),
                                    self._twins)
      says[np.arange(len(best)), best] += _SAY_OF_BEST
    return equal_devices.aligned(decisions, np.log(says), self._twins)

  def _look_around(self, trials: int, rng: np.random.Generator) -> None:
    """Local search around the best placement."""
    before = self._environment.evaluations
    found = self._search.improve(self._best(), self.state.best_step_time_s,
                                 trials, rng)
    if found is not None:
      self.state.record(found, 'search', self._environment.evaluations - before)

  def _imitate(self, steps: int) -> None:
    self._imitation.steps(self._best(), self._config.confidence, steps)

  def _best(self) -> np.ndarray:
    """int32 [M], the best decisions; see `_knows_best`."""
    decisions = self.state.best_decisions
    assert decisions is not None
    return decisions

  def _knows_best(self) -> bool:
    return self.state.best_decisions is not None

  def _can_search(self) -> bool:
    return self._knows_best() and self._search.can_move

  @contextlib.contextmanager
  def _clock(self) -> Iterator[None]:
    start = time.monotonic()
    yield
    self.state.seconds += time.monotonic() - start

  def _price(self, decisions: np.ndarray,
             origin: str) -> environment_lib.Trials:
    before = self._environment.evaluations
    trials = self._environment.price(decisions)
    self.state.record(trials, origin, self._environment.evaluations - before)
    return trials


def _counts(decisions: np.ndarray, num_devices: int) -> tuple[int, ...]:
  return tuple(np.bincount(decisions.ravel(), minlength=num_devices).tolist())
