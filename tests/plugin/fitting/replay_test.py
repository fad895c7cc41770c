import tensorflow as tf

from gdp_grappler.plugin.fitting import replay
from gdp_grappler.plugin.fitting import single_steps
from helpers import strategies


def test_batches_that_were_taken_come_again():
  batches = replay.Replay(iter([1, 2, 3]))
  first = batches.first()
  assert [next(first), next(first)] == [1, 2]
  assert list(batches.again()) == [1, 2, 3]


def test_nothing_was_taken():
  assert list(replay.Replay(iter([1, 2])).again()) == [1, 2]


def test_what_keeps_its_batches_is_handed_on():
  iterator = iter(tf.data.Dataset.range(2))
  for each in (iterator, single_steps.batches(iterator)):
    batches = replay.Replay(each)
    assert batches.first() is each
    assert batches.again() is each


def test_an_iterator_of_a_strategy_is_not_read_in_python():
  """tf_keras passes this kind of iterator under `OneDeviceStrategy`."""
  data = tf.data.Dataset.range(3)
  with strategies.one_device('/cpu:0') as strategy:
    iterator = iter(strategy.experimental_distribute_dataset(data))
  batches = replay.Replay(iterator)
  assert batches.first() is iterator and batches.again() is iterator
