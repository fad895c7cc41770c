"""Models of either Keras whose tables are in parts or whole."""

import contextlib

import numpy as np
import pytest

import gdp_grappler

# Words of the inputs of `classifier`, and the number of all words.
ROWS = 23
IDS = np.random.default_rng(0).integers(0, ROWS, (8, 5))


def scope(parts):
  """Returns a context in which models have tables in parts; 0 for whole."""
  # One pattern for the layers `words` and `head`, because a test may have only
  # one of them, and each pattern needs a layer.
  return (gdp_grappler.split_tables({'[hw]*': parts})
          if parts else contextlib.nullcontext())


def made(api, parts, make, *args, **how):
  """Returns the result of `make`, from a fixed seed; see `scope`."""
  api.utils.set_random_seed(7)
  with scope(parts):
    return make(*args, **how)


def words(api, **how):
  """A built layer with a table [31, 6]."""
  layer = api.layers.Embedding(31, 6, name='words', **how)
  layer.build(None)
  return layer


def head(api, **how):
  """A built layer with a kernel [5, 31]."""
  layer = api.layers.Dense(31, name='head', **how)
  layer.build((None, 5))
  return layer


def model(api, parts, rows, width, length, units):
  """A model with a table `words` [rows, width] and a last layer `head`.

  Args:
    api: keras or tf_keras.
    parts: Parts of each table; 0 for whole tables.
    rows: Number of words.
    width: Width of their vectors.
    length: Words of an input.
    units: Outputs.
  """
  with scope(parts):
    return api.Sequential([
        api.Input((length,), dtype='int32'),
        api.layers.Embedding(rows, width, name='words'),
        api.layers.Flatten(),
        api.layers.Dense(units, name='head')
    ])


def classifier(api, parts, optimizer='adam'):
  """A compiled model that names a word after each row of `IDS`."""
  result = made(api, 0, model, api, parts, ROWS, 6, 5, ROWS)
  result.compile(optimizer,
                 api.losses.SparseCategoricalCrossentropy(from_logits=True))
  return result


def train(classified, eagerly=True):
  """Trains a `classifier` for a step; returns the loss before the step."""
  # Tracing a step takes longer than the few steps of a test.
  classified.run_eagerly = eagerly
  return classified.train_on_batch(IDS, np.arange(8))


def assert_equal(one, other):
  """Fails if weights of two models, each of them whole, differ."""
  for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
    np.testing.assert_array_equal(a, b)


def assert_weights_are_whole(split, plain, table):
  """Fails unless whole weights are got and set.

  Args:
    split: Model whose tables are in parts.
    plain: The same model with whole tables.
    table: Name of the table of words, in messages.
  """
  weights = [w + 1 for w in split.get_weights()]
  assert [w.shape for w in weights] == [w.shape for w in plain.get_weights()]
  split.set_weights(weights)
  for one, other in zip(weights, split.get_weights(), strict=True):
    np.testing.assert_array_equal(one, other)
  with pytest.raises(ValueError, match='has 3 weights, and was given 2'):
    split.set_weights(weights[:2])
  with pytest.raises(ValueError, match=f'"{table}" has the shape'):
    split.set_weights([weights[0].T, *weights[1:]])
  assert split.count_params() == plain.count_params()


def assert_initial_weights_are_whole(api, ids, rows, width):
  """Fails unless a layer in parts gets its initial weights as a whole table."""
  value = np.random.default_rng(1).normal(size=(rows, width)).astype('f')
  with scope(2):
    layer = api.layers.Embedding(rows, width, weights=[value], name='words')
    layer(ids)
  assert len(layer.variables) == 2
  np.testing.assert_array_equal(layer.get_weights()[0], value)
