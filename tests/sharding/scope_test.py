import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.sharding import deciding
from gdp_grappler.sharding import scope


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


def test_a_name_that_no_table_has_is_told():
  """A misspelt name had no effect, without a word."""
  with pytest.warns(UserWarning) as caught:
    with gdp_grappler.split_tables({'wrods': 2, 'head*': 2}):
      _parts('words')
      _parts('head_1')
  warning, = caught
  assert str(warning.message).startswith('split_tables names "wrods"')
  assert 'Did you mean "words"?' in str(warning.message)
  assert warning.filename == __file__


def test_an_error_in_the_scope_is_all_that_is_told():
  with pytest.raises(ValueError):
    with gdp_grappler.split_tables({'words': 2}):
      raise ValueError


def test_a_table_that_cannot_be_split_is_an_error():
  with gdp_grappler.split_tables({'words': 2}):
    with pytest.raises(errors.GdpError, match='"words" cannot be split: no. '):
      _parts('words', 'no')
    assert _parts('head', 'no') == 1


def test_a_table_of_an_inner_scope_has_the_name_of_the_outer_one():
  """The outer scope said that there was no such table."""
  with gdp_grappler.split_tables({'words': 2}):
    with gdp_grappler.split_tables({'words': 4}):
      assert _parts('words') == 4


def test_names_that_were_found_in_a_graph_cause_no_warning():
  with scope.split_found_tables({'words': 2}):
    pass
