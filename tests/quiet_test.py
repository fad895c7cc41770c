import os
import sys

import pytest

from gdp_grappler import quiet


def test_what_goes_well_is_not_shown(capfd):
  with quiet.stderr_held():
    os.write(2, b'native\n')
  print('after', file=sys.stderr)
  assert capfd.readouterr().err == 'after\n'


def test_what_goes_wrong_is_shown(capfd):
  with pytest.raises(ValueError), quiet.stderr_held():
    os.write(2, b'native\n')
    raise ValueError
  assert capfd.readouterr().err == 'native\n'


def test_ctrl_c_is_no_error(capfd):
  """Two notes of TensorFlow stood before the line "interrupted"."""
  with pytest.raises(KeyboardInterrupt), quiet.stderr_held():
    os.write(2, b'native\n')
    raise KeyboardInterrupt
  assert not capfd.readouterr().err


def test_a_closed_stderr_holds_nothing_back(monkeypatch):
  monkeypatch.setattr(sys, 'stderr', None)
  with quiet.stderr_held():
    held = True
  assert held


def test_a_closed_descriptor_holds_nothing_back(capfd):
  saved = os.dup(2)
  os.close(2)
  try:
    with quiet.stderr_held():
      pass
    with pytest.raises(OSError):
      os.fstat(2)
  finally:
    os.dup2(saved, 2)
    os.close(saved)
