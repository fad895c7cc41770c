import pytest

from gdp_grappler.plugin.fitting import trainers
from helpers import alarms


@pytest.fixture(name='warned')
def _warned(monkeypatch):
  result = []
  monkeypatch.setattr(trainers.notices, 'warn_once', result.append)
  return result


class _Stock:
  """A model that is no model of Keras but has the same functions."""

  name = 'odd'
  _jit_compile = False

  def __init__(self):
    self.train_function = None

  def make_train_function(self, force=False):
    del force
    self.train_function = self.step

  def step(self, iterator):
    return next(iterator)


@pytest.mark.parametrize('strategy', [None, 'no strategy'])
def test_a_model_that_cannot_be_prepared_runs_as_keras_runs_it(
    warned, strategy):
  """Once an error of the plugin ended `fit`."""

  class Model(_Stock):
    distribute_strategy = strategy

  trainers._wrap_maker(Model, 'train')
  model = Model()
  model.make_train_function()
  assert model.train_function(iter([3])) == 3
  assert not hasattr(model.train_function, 'is_placed')
  line, = warned
  assert line.startswith('fit of "odd": variables stay where they are')
  assert 'AttributeError' in line


def test_keras_function_stays_if_the_last_part_of_preparing_fails(
    warned, monkeypatch):

  class Model(_Stock):

    class distribute_strategy:
      num_replicas_in_sync = 1

    run_eagerly = False
    steps_per_execution = 1

  def fail(*args):
    raise OSError(f'no state of {len(args)} functions')

  trainers._wrap_maker(Model, 'train')
  monkeypatch.setattr(trainers, '_warn_of_tables', lambda model: None)
  monkeypatch.setattr(trainers, '_succeed', fail)
  model = Model()
  model.make_train_function()
  assert model.train_function == model.step
  line, = warned
  assert 'OSError: no state' in line


def test_in_a_context_keras_makes_its_own_function(warned):

  class Model(_Stock):
    pass

  trainers._wrap_maker(Model, 'train')
  model = Model()
  with trainers.unwrapped():
    model.make_train_function()
  assert model.train_function(iter([3])) == 3
  assert not warned


def test_a_timeout_of_the_program_ends_preparing(warned, monkeypatch):
  """Once training went on, and a warning called it a failure of ours."""

  class Model(_Stock):
    pass

  trainers._wrap_maker(Model, 'train')
  with alarms.alarm() as ring:
    monkeypatch.setattr(trainers, '_wrapped', ring)
    with pytest.raises(alarms.TooLongError):
      Model().make_train_function()
  assert not warned
