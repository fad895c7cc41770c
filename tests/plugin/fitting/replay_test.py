import tensorflow as tf

from gdp_grappler.plugin.fitting import replay
from helpers import strategies


def test_batches_that_were_taken_come_again():
  batches = replay.Replay(iter([1, 2, 3]))
  first = batches.first()
  assert [next(first), next(first)] == [1, 2]
  assert list(batches.again()) == [1, 2, 3]


def test_nothing_was_taken():
  assert list(replay.Replay(iter([1, 2])).again()) == [1, 2]


def test_iterators_in_graphs_are_handed_on():
  iterator = iter(tf.data.Dataset.range(2))
  batches = replay.Replay(iterator)
  assert batches.first() is iterator
  assert batches.again() is iterator


def test_an_iterator_of_a_strategy_is_not_read_in_python():
  """tf_keras fits a model of `OneDeviceStrategy` with one."""
  data = tf.data.Dataset.range(3)
  with strategies.one_device('/cpu:0') as strategy:
    iterator = iter(strategy.experimental_distribute_dataset(data))
  batches = replay.Replay(iterator)
  assert batches.first() is iterator and batches.again() is iterator
