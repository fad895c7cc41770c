import types

import pytest

from gdp_grappler.plugin import loading


class _Loader:

  def load(self, fails=False):
    """Stands for TensorFlow's method, which runs graphs."""
    if fails:
      raise ValueError
    return loading.is_current()


@pytest.fixture(name='loader')
def _loader():
  module = types.SimpleNamespace(
      _EagerSavedModelLoader=type('Loader', (_Loader,), dict(vars(_Loader))))
  for _ in range(2):  # The second call has no effect.
    loading._wrap(module)
  return module._EagerSavedModelLoader()


def test_noted_while_it_loads(loader):
  assert not loading.is_current()
  assert loader.load() is True
  assert not loading.is_current()


def test_forgotten_after_an_error(loader):
  with pytest.raises(ValueError):
    loader.load(fails=True)
  assert not loading.is_current()


def test_a_tensorflow_without_that_class_is_left_alone():
  loading._wrap(types.SimpleNamespace())
