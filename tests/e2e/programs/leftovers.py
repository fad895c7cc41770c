"""Side effects that must not remain: restarted streams, options in a model."""

import pathlib
import sys
import tempfile

import common
import tensorflow as tf

common.make_devices()


def session_draws(seed):
  """Returns numbers of one seeded stream; two kinds of run draw in turn."""
  common.set_option({**common.RANDOM, 'seed': seed, 'min_ops': 4}
                    if seed is not None else False)
  with tf.Graph().as_default():
    x = tf.random.uniform((4, 4), seed=7)
    first = tf.reduce_sum(tf.tanh(tf.sin(x)) * 2.)
    second = first + tf.reduce_sum(tf.cos(tf.exp(x)) * 3.)
    with tf.compat.v1.Session() as session:
      return [float(session.run(fetch)) for fetch in (first, second) * 3]


class Model(tf.Module):
  """A model that calls a function which is not inlined."""

  @tf.function(input_signature=[tf.TensorSpec((4, 4))])
  def outer(self, x):
    return inner(x) + 1.


@tf.function(experimental_attributes={'_noinline': True})
def inner(x):
  for _ in range(12):
    x = tf.tanh(tf.matmul(x, x))
  return x


def saved_with_option():
  """Whether a model that was saved with the option on contains the option."""
  common.set_option({**common.RANDOM, 'min_ops': 4})
  model = Model()
  model.outer(tf.ones((4, 4)))
  with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(model, folder)
    data = (pathlib.Path(folder) / 'saved_model.pb').read_bytes()
  return b'gdp_placement' in data


def empty_dict():
  """Returns the option after it was set to an empty dict, which means on.

  The log then has a notice that the default placer finds no gain.
  """
  tf.config.optimizer.set_experimental_options({'gdp_placement': {}})
  shown = tf.config.optimizer.get_experimental_options()['gdp_placement']

  @tf.function
  def work(x):
    for _ in range(20):
      x = tf.tanh(tf.matmul(x, x))
    return x

  work(tf.ones((4, 4)))
  return shown


if __name__ == '__main__':
  common.finish(stock=session_draws(None),
                placed=[session_draws(seed) for seed in range(3)],
                saved=saved_with_option(), shown=empty_dict(),
                ours='gdp_grappler' in sys.modules)
