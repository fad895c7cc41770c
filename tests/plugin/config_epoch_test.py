from gdp_grappler.plugin import config_epoch


def test_each_change_is_seen():
  before = config_epoch.count()
  config_epoch.note()
  config_epoch.note()
  assert config_epoch.count() == before + 2
