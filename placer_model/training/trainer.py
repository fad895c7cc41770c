"""Training of the policy on one graph: rollouts, updates, best placement.

`Trainer.step` is one iteration.
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

# Gradient steps of imitation between two points at which a run can stop.
_CHUNK = 20
_WARM_TRIALS = 256  # Trials of search between two such points.
# Makes the random numbers of the warm-up differ from those of the iterations.
_WARM_STREAM = 1 << 32
# Share of imitation's learning rate that is used within iterations, where
# imitation corrects PPO but must not dominate it.
_SELF_IMITATION_SHARE = 0.1
# Least probability of a decision when rollouts are aligned.
_LEAST_PROBABILITY = 1e-4
# Least probability of a decision, so that its logarithm is finite.
_LEAST_ODDS = 1e-30
# Added to the probabilities of the best placement's decisions, when rollouts
# are aligned.
_SAY_OF_BEST = .1


@dataclasses.dataclass(frozen=True)
class Report:
  """Statistics of one iteration.

  Attributes:
    iteration: Number of the iteration, from 1.
    reward: Mean reward of the K rollouts.
    valid_share: Share of the K rollouts that are valid.
    sample_step_time_s: Step time of the best rollout; infinite if all are
      invalid.
    best_step_time_s: Step time of the best placement of the run.
    evaluations: Placements priced in the run.
    entropy: Mean entropy of a decision in nats, before the update.
    kl: Mean divergence per decision of the updated from the sampled policy.
    clip_fraction: Share of the decisions whose probability ratio left the
      clipping range.
    loss: Loss of PPO.
    decisions: [D], how often each device was chosen in the K x M sampled
      decisions.
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
  """Trains a policy network on one graph.

  Attributes:
    placer: The network.
    state: Counters and the best placement, see `run_state.RunState`.
    reference_s: Run time of the best baseline in seconds, the unit of the
      reward.
    optimizers: Optimizers of the network's weights.
    baselines: int [B, M], placements that the run starts from.
  """

  def __init__(self, environment: environment_lib.Environment,
               placer: tf.keras.layers.Layer, features: Mapping[str, tf.Tensor],
               config: train_config.TrainConfig, seed: int,
               baselines: np.ndarray, reference_s: float,
               optimizers: optimizers_lib.Optimizers | None = None) -> None:
    """Prepares a run; nothing is priced or learned yet.

    Args:
      environment: Prices decisions about M units.
      placer: Network that maps `features` to masked logits [M, D].
      features: `environment.features` as the network takes them.
      config: Settings of the training.
      seed: Seed of the samples; the network has its initial weights already.
      baselines: int [B, M], placements that the run starts from.
      reference_s: Run time of the best baseline in seconds.
      optimizers: Optimizers of the network. None means new ones.
    """
    placer(features)  # Creates the weights.
    self.state = run_state.RunState(environment.allowed)
    self.reference_s = reference_s
    self._environment, self._config, self._seed = environment, config, seed
    self.placer = placer
    self.baselines = baselines
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
    self._equal_sets: list[tuple[int, ...]] = []
    if config.exchange:
      self._equal_sets = equal_devices.equal_sets(environment.cluster,
                                                  environment.allowed)
    self._done = 0.
    self._levels: list[np.ndarray] = []
    if config.exploration == 'levels':
      self._levels = exploration.levels(environment, config.levels)

  def checkpoint(self) -> tf.train.Checkpoint:
    """Returns all state that a resumed run needs in order to go on exactly."""
    return tf.train.Checkpoint(placer=self.placer, state=self.state,
                               ppo_optimizer=self.optimizers.ppo,
                               imitation_optimizer=self.optimizers.imitation)

  @property
  def num_units(self) -> int:
    """Number M of units."""
    return self._environment.num_units

  @property
  def share(self) -> float:
    """Share of the iterations that are done, from 0 to 1."""
    iterations = self._config.iterations
    return min(self.state.iteration / iterations, 1.) if iterations else 1.

  def warm_up(self) -> Iterator[None]:
    """Does the work before the first rollout, in parts of a second or less.

    The work is: price the baselines, search around the best one, and imitate
    the best placement found. The state holds the progress. So a checkpoint may
    be written between any two parts, and a run resumed from it goes on exactly.
    """
    config, state = self._config, self.state
    if state.iteration:
      return
    if not state.evaluations['baseline']:
      with self._clock():
        self._price(self.baselines, 'baseline')
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
    """Runs one iteration: rollouts, PPO, local search, self-imitation.

    Args:
      done: Share of the run that is over, from 0 to 1, which determines the
        annealing. None means the share of the iterations.
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
    return Report(
        iteration=self.state.iteration, reward=float(rewards.mean()),
        valid_share=float(trials.valid.mean()),
        sample_step_time_s=float(trials.step_time_s.min()),
        best_step_time_s=self.state.best_step_time_s,
        evaluations=self.state.total_evaluations,
        entropy=divergences.entropy(probabilities), kl=kl, decisions=tuple(
            np.bincount(trials.decisions.ravel(),
                        minlength=probabilities.shape[1]).tolist()), **losses)

  def distill(
      self, stopped: Callable[[],
                              bool] = lambda: False) -> environment_lib.Trials:
    """Makes the best placement the policy's likeliest one.

    The learning rate falls to zero, and the weights whose likeliest placement
    is fastest are kept. Checkpoints do not hold these weights: a resumed run
    goes on from the policy that PPO left.

    Args:
      stopped: Returns whether no time is left; called every few steps.

    Returns:
      The policy's likeliest placement, priced.
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
    """Returns the likeliest placement of the policy, priced."""
    return self._price(self._imitation.greedy()[None], 'greedy')

  def say_also(self, sets: Sequence[np.ndarray]) -> environment_lib.Trials:
    """Returns all placements decoded from the policy's probabilities, priced.

    Args:
      sets: Partitions of the ops by `policy_decoding.sizes`, int [N] each; the
        last one is the M units.
    """
    odds = np.maximum(self._agent.probabilities(), _LEAST_ODDS)
    said = np.where(self._environment.allowed, np.log(odds), -np.inf)
    return self._price(
        policy_decoding.decisions(said, sets, self._environment.op_seconds,
                                  self._seed), 'greedy')

  def best_placement(self) -> placement_lib.Placement:
    """Returns the best valid placement; there must be one."""
    return self.placement(self._best())

  def placement(self, decisions: np.ndarray) -> placement_lib.Placement:
    """Returns the placement of int [M] decisions."""
    return self._environment.placement(decisions)

  def _sample(self, probabilities: np.ndarray,
              rng: np.random.Generator) -> np.ndarray:
    """Draws the decisions of the rollouts, int32 [K, M]."""
    decisions = exploration.choose(probabilities,
                                   self._uniforms(probabilities, rng), rng)
    if self._config.greedy:
      decisions[0] = probabilities.argmax(axis=1)
    return decisions

  def _uniforms(self, probabilities: np.ndarray,
                rng: np.random.Generator) -> np.ndarray:
    """Draws the random numbers of the rollouts, float64 [K, M]."""
    rollouts = self._config.rollouts
    if self._config.exploration == 'correlated':
      return exploration.correlated_uniforms(self._neighbours, rollouts, rng)
    return exploration.level_uniforms(self._level(probabilities), rollouts, rng)

  def _level(self, probabilities: np.ndarray) -> np.ndarray:
    """Returns the clusters of the finest level that may be used, int [M].

    The more certain the policy, the smaller the clusters that are drawn
    independently. The entropy of a rollout stays below a limit that the first
    iteration sets.
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
    """Share of the learning rate that is left."""
    if not self._config.anneal:
      return 1.
    return 1 - (1 - self._config.last_rate) * self._annealed

  @property
  def _temperature(self) -> float:
    config = self._config
    return config.temperature * config.last_temperature**self._annealed

  @property
  def _annealed(self) -> float:
    """Progress of the annealing, from 0 to 1; 1 without annealing."""
    return self._done if self._config.anneal else 1.

  def _learn(
      self, probabilities: np.ndarray,
      trials: environment_lib.Trials) -> tuple[np.ndarray, dict[str, float]]:
    rewards = reward.rewards(trials.step_time_s, trials.valid, self.reference_s)
    if self._config.credit == 'unit':
      return rewards, self._agent.train_each(
          probabilities, self._credited(probabilities, trials.decisions,
                                        rewards))
    advantages = reward.advantages(rewards, self.state.reward_count,
                                   self.state.reward_total)
    self.state.reward_count += rewards.size
    self.state.reward_total += float(rewards.sum())
    losses = self._agent.train(probabilities, trials.decisions, rewards,
                               advantages)
    return rewards, losses

  def _credited(self, probabilities: np.ndarray, decisions: np.ndarray,
                rewards: np.ndarray) -> np.ndarray:
    """Returns the advantage of each decision, float64 [M, D]."""
    config, state = self._config, self.state
    seen = [*state.recent, (decisions, rewards)]
    state.recent = seen[1 - config.window:] if config.window > 1 else []
    drawn, earned = (np.concatenate(parts) for parts in zip(*seen))
    if self._equal_sets:
      drawn = self._aligned(probabilities, drawn)
    found = credit.effects(probabilities, drawn, credit.scores(earned),
                           config.ridge)
    return credit.tempered(probabilities, found, self._temperature)

  def _aligned(self, probabilities: np.ndarray,
               decisions: np.ndarray) -> np.ndarray:
    """Exchanges equal devices to make rollouts likely, int32 [K, M].

    The best placement adds to the probabilities, so that rollouts agree with
    each other while the policy is undecided.
    """
    says = np.maximum(probabilities, _LEAST_PROBABILITY)
    if self._knows_best():
      best, = equal_devices.aligned(self._best()[None], np.log(says),
                                    self._equal_sets)
      says[np.arange(len(best)), best] += _SAY_OF_BEST
    return equal_devices.aligned(decisions, np.log(says), self._equal_sets)

  def _look_around(self, trials: int, rng: np.random.Generator) -> None:
    """Searches locally around the best placement."""
    before = self._environment.evaluations
    found = self._search.improve(self._best(), self.state.best_step_time_s,
                                 trials, rng)
    if found is not None:
      self.state.record(found, 'search', self._environment.evaluations - before)

  def _imitate(self, steps: int) -> None:
    self._imitation.steps(self._best(), self._config.confidence, steps)

  def _best(self) -> np.ndarray:
    """Returns the best decisions, int32 [M]; see `_knows_best`."""
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
