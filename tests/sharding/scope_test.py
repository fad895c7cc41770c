import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.sharding import deciding


@pytest.fixture(autouse=True)
def _nobody_else(monkeypatch):
  monkeypatch.setattr(deciding, '_of_program', [])


def _parts(layer, why=''):
  return deciding.parts(layer, (10, 2), 4, why)


def test_scopes_come_before_the_program_and_inner_before_outer():
  deciding.decide_by(lambda *_: 7)
  assert _parts('words') == 7
  with gdp_grappler.split_tables({'words': 2, 'head': 3}):
    with gdp_grappler.split_tables({'words': 5}):
      assert [_parts(name) for name in ('words', 'head', 'other')] == [5, 3, 7]
    assert _parts('words') == 2
  assert _parts('words') == 7


def test_a_scope_with_a_wrong_number_is_refused():
  with pytest.raises(errors.GdpError, match='whole number'):
    gdp_grappler.split_tables({'words': 0})


def test_a_table_that_cannot_be_split_is_an_error():
  with gdp_grappler.split_tables({'words': 2}):
    with pytest.raises(errors.GdpError, match='"words" cannot be split: no. '):
      _parts('words', 'no')
    assert _parts('head', 'no') == 1
