import pytest

from gdp_grappler.placers.search import stages


@pytest.mark.parametrize('count', [1, 2, 5])
def test_parts_follow_each_other(count):
  parts = stages.Stretch(.25, .5, .1, .6).parts(count)
  assert parts[0].begin == .25 and parts[-1].end == pytest.approx(.5)
  for one, other in zip(parts, parts[1:]):
    assert one.end == pytest.approx(other.begin)
    assert one.end - one.begin == pytest.approx(.25 / count)
  assert {(part.cooled_from, part.cooled_to) for part in parts} == {(.1, .6)}


def test_an_annealing_cools_along_its_stretch():
  stretch = stages.Stretch(.25, .75, .5, 1.)
  assert [stretch.cooled(at) for at in (.1, .25, .5, .75)
         ] == pytest.approx([.5, .5, .75, 1.])


@pytest.mark.parametrize('table', [stages.FIFO_ONLY, stages.BOTH_ORDERS])
def test_stages_follow_each_other_until_all_is_cold(table):
  ends = [stage.until for stage in table]
  assert ends == sorted(set(ends)) and ends[-1] == 1.
  assert table[-1].cooled == 1.
