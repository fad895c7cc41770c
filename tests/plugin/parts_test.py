import pytest

from gdp_grappler.plugin import parts


@pytest.mark.parametrize('value', [0, 5, 2.0, True, 'two', '2', [2]])
def test_bad_values(value):
  with pytest.raises(ValueError, match='2 to 4'):
    parts.checked(value)


@pytest.mark.parametrize('value', [None, 1, 2, 4, 'auto'])
def test_good_values(value):
  assert parts.checked(value) == value
