"""tf-agents' PPO for a graph of many units.

Each unit is a bandit, and its arms are the devices. The M units are tf-agents'
batch axis and the K rollouts its time axis, and each step is an episode of its
own. So the probability ratio and its clipping are per decision and do not
depend on the size of the graph, and `PPOClipAgent` is used without a change.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Mapping, Protocol

from absl import logging
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.agents.ppo import ppo_clip_agent
from tf_agents.networks import network as tf_agents_network
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory
from tf_agents.utils import common


class PpoConfig(Protocol):
  """PPO's settings; see `train_config.TrainConfig`."""

  @property
  def epochs(self) -> int:
    """Number of gradient steps on the same rollouts."""

  @property
  def learning_rate(self) -> float:
    """Learning rate of Adam."""

  @property
  def clip_ratio(self) -> float:
    """Epsilon of the clipped objective."""

  @property
  def entropy_bonus(self) -> float:
    """Weight of the entropy in the loss."""

  @property
  def gradient_clip(self) -> float:
    """Largest global norm of a gradient."""


class UnitActor(tf_agents_network.Network):
  """Maps the numbers of units to distributions over devices.

  One forward pass computes the logits of all units, whatever the number of
  rollouts. The observation, which is a unit's number, only selects rows.
  """

  # tf-agents requires the argument names `self` and `observation`.
  def __init__(self, placer: tf.keras.layers.Layer,
               logits: Callable[[], tf.Tensor], observation_spec: Any) -> None:
    super().__init__(input_tensor_spec=observation_spec, state_spec=(),
                     name='UnitActor')
    self._placer = placer  # An attribute, so that Keras finds its variables.
    self._logits = logits

  def call(self, observation: tf.Tensor, step_type: tf.Tensor | None = None,
           network_state: tuple[Any, ...] = (),
           training: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """Returns distributions over devices of the observed units."""
    del step_type, training
    rows = tf.gather(self._logits(), observation)  # [..., D]
    return (tfp.distributions.Categorical(logits=rows,
                                          dtype=tf.int32), network_state)


class NoCritic(tf_agents_network.Network):
  """Predicts zero, because the paper's baseline is a running mean."""

  def __init__(self, observation_spec: Any) -> None:
    super().__init__(input_tensor_spec=observation_spec, state_spec=(),
                     name='NoCritic')

  def call(self, observation: tf.Tensor, step_type: tf.Tensor | None = None,
           network_state: tuple[Any, ...] = (),
           training: bool = False) -> tuple[Any, Any]:
    """Returns zeros, one per observation."""
    del step_type, training
    return tf.zeros(tf.shape(observation), tf.float32), network_state


class PlacementAgent:
  """`PPOClipAgent` for the M units of one graph."""

  def __init__(self, placer: tf.keras.layers.Layer,
               features: Mapping[str, tf.Tensor], num_units: int,
               num_devices: int, config: PpoConfig,
               optimizer: tf.keras.optimizers.Optimizer) -> None:
    """Wraps a network.

    Args:
      placer: Network that maps `features` to masked logits [M, D].
      features: Features of the graph.
      num_units: Number M of units.
      num_devices: Number D of devices.
      config: PPO's settings.
      optimizer: Optimizer of the network, see `optimizers.Optimizers`.
    """
    self._epochs = config.epochs
    self._learning_rate = config.learning_rate
    self._logits = lambda: placer(features)
    self._probabilities = tf.function(
        lambda: tf.nn.softmax(self._logits(), axis=-1), autograph=False)
    self._optimizer = optimizer
    with _errors_only():  # tf-agents warns of Keras's legacy optimizers.
      self._agent = self._ppo(placer, num_units, num_devices, config)
    self._agent.initialize()
    # In TensorFlow 2, tf-agents leaves making a tf.function to the caller.
    self._train = common.function(self._agent.train)

  def probabilities(self) -> np.ndarray:
    """Returns the probability of each device for each unit, float32 [M, D]."""
    return self._probabilities().numpy()

  def slow_down(self, share: float) -> None:
    """Sets the learning rate to a share of the initial one."""
    self._optimizer.learning_rate = self._learning_rate * share

  def train(self, probabilities: np.ndarray, decisions: np.ndarray,
            rewards: np.ndarray, advantages: np.ndarray) -> dict[str, float]:
    """Takes a few clipped gradient steps on K rollouts.

    Args:
      probabilities: float [M, D], distribution from which decisions were drawn.
      decisions: int [K, M], device of each unit in each rollout.
      rewards: float [K], reward of each rollout.
      advantages: float [K], advantage of each rollout; or [M, K], of each
        decision.

    Returns:
      'loss' and 'clip_fraction' of the last step.
    """
    return self._steps(
        _experience(probabilities, decisions, rewards, advantages), None)

  def train_each(self, probabilities: np.ndarray,
                 advantages: np.ndarray) -> dict[str, float]:
    """Takes a few clipped gradient steps on advantages of all decisions.

    The objective is the expectation of PPO's objective: each device of a unit
    is weighted by its probability.

    Args:
      probabilities: float [M, D], the policy.
      advantages: float [M, D]; the policy's mean of each row is zero.

    Returns:
      'loss' and 'clip_fraction' of the last step.
    """
    units, devices = probabilities.shape
    # Each step has a twin, see `_experience`. The twins have no weight.
    weights = tf.constant(np.tile(probabilities, 2) * devices, tf.float32)
    decisions = np.tile(np.arange(devices)[:, None], units)
    return self._steps(
        _experience(probabilities, decisions, np.zeros(devices),
                    np.where(probabilities > 0, advantages, 0)), weights)

  def _ppo(self, placer: tf.keras.layers.Layer, num_units: int,
           num_devices: int, config: PpoConfig) -> ppo_clip_agent.PPOClipAgent:
    observation = tensor_spec.BoundedTensorSpec((), tf.int32, 0, num_units - 1,
                                                name='unit')
    return ppo_clip_agent.PPOClipAgent(
        ts.time_step_spec(observation),
        tensor_spec.BoundedTensorSpec((), tf.int32, 0, num_devices - 1,
                                      name='device'),
        optimizer=self._optimizer,
        actor_net=UnitActor(placer, self._logits, observation),
        value_net=NoCritic(observation),
        importance_ratio_clipping=config.clip_ratio,
        entropy_regularization=config.entropy_bonus,
        gradient_clipping=config.gradient_clip,
        discount_factor=0.0,
        value_pred_loss_coef=0.0,
        # One epoch per call. Several epochs in one graph would take several
        # times as long to trace, and repeated calls of `train` do the same.
        num_epochs=1,
        normalize_rewards=False,
        normalize_observations=False,
        compute_value_and_advantage_in_train=False,
        update_normalizers_in_train=False,
        train_step_counter=tf.Variable(0, dtype=tf.int64, trainable=False))

  def _steps(self, experience: Any,
             weights: tf.Tensor | None) -> dict[str, float]:
    for _ in range(self._epochs):
      info = self._train(experience, weights)
    return {
        'loss': float(info.loss),
        'clip_fraction': float(info.extra.clip_fraction)
    }


@contextlib.contextmanager
def _errors_only() -> Iterator[None]:
  """Suppresses warnings of tf-agents."""
  verbosity = logging.get_verbosity()
  logging.set_verbosity(logging.ERROR)
  try:
    yield
  finally:
    logging.set_verbosity(verbosity)


def _experience(probabilities: np.ndarray, decisions: np.ndarray,
                rewards: np.ndarray, advantages: np.ndarray) -> Any:
  """Returns T steps of M units as a batch of M trajectories.

  tf-agents subtracts the mean over all steps from the advantages and divides by
  their deviation, which would replace the paper's bias term by the mean of the
  batch. To prevent this, each step has a twin with the opposite advantage. So
  the mean is zero, and the deviation is the root mean square. The twin is
  marked as a boundary between episodes and therefore has no weight.

  Args:
    probabilities: float [M, D], distribution from which decisions were drawn.
    decisions: int [T, M], device of each unit in each step.
    rewards: float [T], reward of each step.
    advantages: float [T], or [M, T].
  """
  decisions = np.concatenate([decisions, decisions])
  rewards = np.concatenate([rewards, rewards])
  advantages = np.concatenate([advantages, -advantages], axis=-1)
  steps, units = decisions.shape

  def per_step(values: float | np.ndarray, dtype: tf.DType) -> tf.Tensor:
    return tf.constant(np.broadcast_to(values, (units, steps)), dtype)

  kinds = np.full(steps, ts.StepType.FIRST)
  kinds[steps // 2:] = ts.StepType.LAST
  logits = np.log(np.maximum(probabilities, 1e-30))
  return trajectory.Trajectory(
      step_type=per_step(kinds, tf.int32),
      observation=per_step(np.arange(units)[:, None], tf.int32),
      action=tf.constant(decisions.T, tf.int32), policy_info={
          'dist_params': {
              'logits':
                  tf.constant(
                      np.broadcast_to(logits[:, None],
                                      (units, steps, logits.shape[1])),
                      tf.float32)
          }, 'value_prediction': per_step(0.0, tf.float32),
          'return': per_step(rewards, tf.float32),
          'advantage': per_step(advantages, tf.float32)
      }, next_step_type=per_step(ts.StepType.LAST, tf.int32),
      reward=per_step(rewards, tf.float32), discount=per_step(0.0, tf.float32))
