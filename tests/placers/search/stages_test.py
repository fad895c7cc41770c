import pytest

from gdp_grappler.placers.search import stages


def test_an_annealing_cools_along_its_stretch():
  stretch = stages.Stretch(.25, .75, .5, 1.)
  assert [stretch.cooled(at) for at in (.1, .25, .5, .75)
         ] == pytest.approx([.5, .5, .75, 1.])


@pytest.mark.parametrize('table', [stages.FIFO_ONLY, stages.BOTH_ORDERS])
def test_stages_follow_each_other_until_all_is_cold(table):
  ends = [stage.until for stage in table]
  assert ends == sorted(set(ends)) and ends[-1] == 1.
  assert table[-1].cooled == 1.
  fifo = [stage.cooled for stage in table if 'fifo' in stage.order.value]
  assert fifo == sorted(set(fifo))
