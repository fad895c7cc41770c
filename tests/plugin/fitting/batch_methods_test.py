import pytest

from gdp_grappler.plugin.fitting import batch_methods


class _Model:
  """A model whose methods return the names of steps."""

  def train_on_batch(self, *others):
    return [*map(batch_methods.named, ('fit of "m"', 'predict of "m"')),
            *(other() for other in others)]  # yapf: disable

  def test_on_batch(self):
    return batch_methods.named('evaluate of "m"')

  def predict_on_batch(self, x):
    if not x:
      raise ValueError(batch_methods.named('predict of "m"'))
    return batch_methods.named('predict of "m"')


@pytest.fixture(name='model')
def _model():

  class Watched(_Model):
    pass

  batch_methods.watch(Watched)
  return Watched()


def test_a_step_has_the_name_of_the_method_that_was_called(model):
  """Once a line said "fit of" after a call of `train_on_batch`."""
  assert model.train_on_batch(model.test_on_batch) == [
      'train_on_batch of "m"', 'predict of "m"', 'test_on_batch of "m"'
  ]
  assert model.predict_on_batch(1) == 'predict_on_batch of "m"'


def test_the_name_does_not_outlive_the_call(model):
  with pytest.raises(ValueError, match='predict_on_batch of "m"'):
    model.predict_on_batch(0)
  assert batch_methods.named('predict of "m"') == 'predict of "m"'
