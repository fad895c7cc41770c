from gdp_grappler.plugin import changes


def test_each_change_is_seen():
  before = changes.count()
  changes.note()
  changes.note()
  assert changes.count() == before + 2
