"""One placer, several graphs."""

import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf

from helpers import toy_training
from placer_model.training import batch as batch_lib
from placer_model.training import optimizers as optimizers_lib
from placer_model.training import train_config
from placer_model.training import trainer as trainer_lib


class _FakeTrainer:
  """Counts what it is asked for."""

  placer = None

  def __init__(self, num_units, parts=0):
    self.num_units, self._parts = num_units, parts
    self.state = types.SimpleNamespace(iteration=0)

  def warm_up(self):
    yield from range(self._parts)

  def step(self):
    self.state.iteration += 1

  def say(self):
    return 'said', self.num_units

  def distill(self, stopped):
    del stopped
    return 'distilled', self.num_units


def _run(batch, turns=None):
  """Indices of the graphs that had a turn."""
  order = []
  while len(order) != turns and (index := batch.next()) is not None:
    batch.trainers[index].step()
    order.append(index)
  return order


def _fakes(*sizes, iterations=8):
  return batch_lib.Batch([_FakeTrainer(size) for size in sizes], iterations)


def test_small_graphs_begin_and_all_get_through():
  batch = _fakes(900, 40, 60)
  assert (batch.iteration, batch.iterations) == (0, 24)
  order = _run(batch)
  assert order[:3] == [1, 1, 2]  # Joined at 0, 1/8 and 1/4 of the run.
  assert order.index(2) < order.index(0)
  assert [order.count(i) for i in range(3)] == [8] * 3
  assert set(order[-3:]) == {0, 1, 2}
  assert batch.iteration == batch.iterations


def test_whose_turn_it_is_follows_from_how_far_all_are():
  whole = _run(_fakes(5, 5, 5))
  batch = _fakes(5, 5, 5)
  done = _run(batch, turns=7)
  rest = _fakes(5, 5, 5)
  for trainer, before in zip(rest.trainers, batch.trainers):
    trainer.state.iteration = before.state.iteration
  assert done + _run(rest) == whole


def test_one_graph_alone():
  batch = _fakes(7, iterations=3)
  assert _run(batch) == [0, 0, 0]
  assert batch.finish(lambda: False) == [('distilled', 7)]
  assert _run(_fakes(7, iterations=0)) == []


def test_what_is_said_of_several_graphs_is_not_imitated():
  assert _fakes(7, 8).finish(lambda: False) == [('said', 7), ('said', 8)]


def test_warm_up_takes_turns():
  trainers = [_FakeTrainer(5, parts) for parts in (3, 1, 2)]
  batch = batch_lib.Batch(trainers, 1)
  order = [trainers.index(trainer) for trainer in batch.warm_up()]
  assert order == [0, 1, 2, 0, 2, 0]


class _SharedPlacer(tf.keras.layers.Layer):
  """One logit per device, whatever the graph."""

  def __init__(self):
    super().__init__()
    self.row = self.add_weight(name='row', shape=[3], initializer='zeros')

  def call(self, features):
    return tf.zeros_like(features['like']) + self.row


def _batch(sizes):
  config = dataclasses.replace(train_config.preset('paper'), iterations=3,
                               rollouts=4, epochs=1)
  placer, trainers = _SharedPlacer(), []
  optimizers = optimizers_lib.Optimizers.make(config)
  for size in sizes:
    environment = toy_training.chain_environment(size)
    trainers.append(
        trainer_lib.Trainer(environment, placer,
                            {'like': tf.zeros(environment.allowed.shape)},
                            config, 0, np.ones((1, size),
                                               np.int32), size, optimizers))
  return batch_lib.Batch(trainers, config.iterations)


def test_each_graph_may_have_iterations_of_its_own():
  batch = _fakes(40, 60, iterations=(2, 6))
  assert batch.iterations == 8
  batch.trainers[1].step()
  assert (batch.share(0), batch.share(1)) == (0, pytest.approx(1 / 6))
  order = _run(batch)
  assert [order.count(i) for i in range(2)] == [2, 5]


def test_resumed_batch_equals_an_uninterrupted_one(tmp_path):
  batch = _batch((4, 5))
  _run(batch, turns=3)
  path = batch.checkpoint().save(str(tmp_path / 'ckpt'))
  _run(batch)
  rest = _batch((4, 5))
  rest.checkpoint().restore(path).assert_existing_objects_matched()
  assert rest.iteration == 3
  _run(rest)
  assert np.abs(rest.placer.row).max() > 0  # Both graphs taught it.
  np.testing.assert_array_equal(rest.placer.row, batch.placer.row)
  for one, other in zip(rest.trainers, batch.trainers):
    one.state.seconds = other.state.seconds = 0.0
    assert one.state.serialize() == other.state.serialize()
