import contextlib
import inspect

import pytest

from gdp_grappler import method_wrapping


class _Counter:

  def __init__(self):
    self.count = 0

  def add(self, number, *, times=1):
    """Adds a number."""
    self.count += number * times
    return self.count


class _Other(_Counter):
  pass


def _twice(stock, self, number, **how):
  stock(self, number, **how)
  return stock(self, number, **how)


def _negative(stock, self, number, **how):
  return stock(self, -number, **how)


@contextlib.contextmanager
def _restored():
  stock = _Counter.add
  try:
    yield
  finally:
    _Counter.add = stock


def test_a_wrapper_gets_the_former_method_and_the_arguments():
  with _restored():
    method_wrapping.wrap(_Counter, 'add', _twice)
    assert _Counter().add(3, times=2) == 12
    assert _Counter.add.__doc__ == 'Adds a number.'
    assert inspect.getfullargspec(_Counter.add).args == ['self', 'number']


def test_a_method_is_wrapped_once_by_each_wrapper():
  with _restored():
    assert not method_wrapping.is_wrapped(_Counter, 'add', _twice)
    for wrapper in (_twice, _negative, _twice, _negative):
      method_wrapping.wrap(_Counter, 'add', wrapper)
      assert method_wrapping.is_wrapped(_Counter, 'add', wrapper)
    assert _Counter().add(3) == -6


def test_a_method_that_is_wrapped_in_a_base_class_is_not_wrapped_again():
  with _restored():
    method_wrapping.wrap(_Counter, 'add', _twice)
    method_wrapping.wrap(_Other, 'add', _twice)
    assert _Other().add(1) == 2


class _Base:

  def name(self):
    return 'base'


class _Changed(_Base):
  """Behind `_Inheritor` in some subclasses, as a class of tf.layers is."""

  def name(self):
    return f'changed {super().name()}'


def _loud(stock, self):
  return f'{stock(self)}!'


def _polite(stock, self):
  return f'{stock(self)}, please'


@pytest.fixture(name='inheritor')
def _inheritor():
  """A class that inherits a method, which is wrapped in this class alone."""

  class _Inheritor(_Base):
    pass

  method_wrapping.wrap(_Inheritor, 'name', _loud)
  return _Inheritor


def test_a_wrapped_class_inherits_as_before(inheritor):
  """The method of `_Base` was called, even if a subclass had another one."""

  class Both(inheritor, _Changed):

    def long_name(self):
      return inheritor.name(self), super().name(), Both.name(self)

  assert inheritor().name() == 'base!'
  assert _Base().name() == 'base'
  assert Both().name() == 'changed base!'
  # A call by the class knows only the base classes of this class.
  assert Both().long_name() == ('base!', 'changed base!', 'changed base!')


def test_base_classes_of_a_wrapped_class_may_change(inheritor, monkeypatch):
  """Layers of tf_keras called `add_weight` of bases that they no longer had."""
  monkeypatch.setattr(_Base, 'name', lambda self: 'patched')
  assert inheritor().name() == 'patched!'
  inheritor.__bases__ = (_Changed,)
  assert inheritor().name() == 'changed patched!'


def test_an_inherited_method_may_have_two_wrappers(inheritor):
  for _ in range(2):
    method_wrapping.wrap(inheritor, 'name', _polite)

  class Both(inheritor, _Changed):
    pass

  assert inheritor().name() == 'base!, please'
  assert Both().name() == 'changed base!, please'
  assert method_wrapping.is_wrapped(Both, 'name', _loud)
  assert method_wrapping.is_wrapped(Both, 'name', _polite)
  assert not method_wrapping.is_wrapped(_Base, 'name', _loud)


def test_parameters_of_an_inherited_method_are_those_of_the_subclass(inheritor):
  """tf_keras reads them to pass arguments on."""

  class Named(_Base):

    def name(self, title=''):
      return title

  class Both(inheritor, Named):
    pass

  assert inspect.getfullargspec(Both.name).args == ['self', 'title']
