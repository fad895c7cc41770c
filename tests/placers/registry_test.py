import pytest

from gdp_grappler import errors
from gdp_grappler.placers import registry


def test_names_are_sorted_and_hold_the_learned_policy():
  names = registry.names()
  assert list(names) == sorted(names)
  assert registry.LEARNED in names
  assert {'metis', 'random', 'single_device'} <= set(names)


def test_unknown_names_get_a_hint():
  with pytest.raises(errors.GdpError, match='Did you mean "random"'):
    registry.create('randon')
  with pytest.raises(errors.GdpError, match='Placers: .*metis, .*random'):
    registry.create('')


@pytest.mark.parametrize('name',
                         sorted(set(registry.names()) - {registry.LEARNED}))
def test_placers_without_a_policy(name):
  assert callable(registry.create(name).place)
