"""What the networks of this package have in common."""

from __future__ import annotations

import tensorflow as tf

# Logit of a device that is not allowed: finite, and its probability is zero.
MASKED_LOGIT = -1e9


class Weights:
  """Makes variables that depend on a seed and on the order of creation."""

  def __init__(self, seed: int) -> None:
    self._seed, self._count = seed, 0

  def matrix(self, rows: int, columns: int, name: str,
             scale: float = 1.) -> tf.Variable:
    """float32 [rows, columns], `scale` times what Glorot (2010) has."""
    self._count += 1
    limit = scale * (6. / (rows + columns))**0.5
    return tf.Variable(
        tf.random.stateless_uniform([rows, columns], [self._seed, -self._count],
                                    -limit, limit), name=name)

  def zeros(self, size: int, name: str) -> tf.Variable:
    """float32 [size]."""
    return tf.Variable(tf.zeros([size]), name=name)


def bounded(logits: tf.Tensor, constant: float,
            temperature: float) -> tf.Tensor:
  """C tanh(l / T), equation 1."""
  return constant * tf.tanh(logits / temperature)


def with_noise(logits: tf.Tensor, noise: tf.Tensor,
               seed: tf.Tensor) -> tf.Tensor:
  """Logits and normal noise, `noise` times their root mean square wide."""
  width = noise * tf.sqrt(tf.reduce_mean(logits**2))
  return tf.cond(
      noise > 0., lambda: logits + width * tf.random.stateless_normal(
          tf.shape(logits), seed), lambda: logits)


def log_prob_and_entropy(logits: tf.Tensor,
                         choices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Of independent choices.

  Args:
    logits: float32 [..., D].
    choices: int32 [...].

  Returns:
    Log-probabilities [...], and entropies in nats [...].
  """
  log_p = tf.nn.log_softmax(logits)
  chosen = tf.gather(log_p, choices, batch_dims=choices.shape.rank)
  return chosen, -tf.reduce_sum(tf.exp(log_p) * log_p, axis=-1)
