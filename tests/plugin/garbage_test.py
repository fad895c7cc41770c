import gc
import os
import threading

import pytest

from gdp_grappler.plugin import garbage


@pytest.fixture(autouse=True, name='collector')
def fixture_collector():
  """Switches the garbage collector on, before and after a test."""
  gc.enable()
  yield
  gc.enable()


def test_it_is_on_again_afterwards():
  with garbage.uncollected():
    assert not gc.isenabled()
  assert gc.isenabled()
  with pytest.raises(ValueError):
    with garbage.uncollected():
      raise ValueError
  assert gc.isenabled()


def test_a_program_that_switched_it_off_finds_it_off():
  gc.disable()
  with garbage.uncollected():
    pass
  assert not gc.isenabled()


def test_it_waits_for_the_last_of_several():
  began, ends = threading.Event(), threading.Event()

  def longer():
    with garbage.uncollected():
      began.set()
      ends.wait(20)

  other = threading.Thread(target=longer)
  with garbage.uncollected():
    other.start()
    assert began.wait(20)
  assert not gc.isenabled()
  ends.set()
  other.join()
  assert gc.isenabled()


class _PausesWhenItGoes:
  """Garbage whose finalizer pauses the collector."""

  def __init__(self):
    self.itself = self

  def __del__(self):
    with garbage.uncollected():
      pass


def test_finalizers_may_pause_it_too():
  with garbage.uncollected():
    _PausesWhenItGoes()
  assert gc.isenabled()


def test_the_child_of_a_fork_has_it_on():
  with garbage.uncollected():
    child = os.fork()
    if not child:
      os._exit(0 if gc.isenabled() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not gc.isenabled()
  assert gc.isenabled()
