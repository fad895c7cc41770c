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
