import contextlib
import inspect

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
