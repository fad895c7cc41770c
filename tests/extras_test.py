import sys

import pytest

from gdp_grappler import errors
from gdp_grappler import extras


def test_what_is_there_is_enough():
  extras.require('Nobody', *extras.TRAIN, *extras.BENCH)
  assert 'tf_agents' in extras.TRAIN and 'matplotlib' in extras.BENCH


def test_what_is_missing_is_named_with_its_extra(monkeypatch):
  monkeypatch.setitem(sys.modules, 'tf_agents', None)
  with pytest.raises(errors.GdpError) as info:
    extras.require('gdp_train', *extras.TRAIN)
  assert str(info.value) == (
      'gdp_train needs the package tf-agents, which is not installed. Run: '
      "pip install 'gdp-grappler[train]'")
