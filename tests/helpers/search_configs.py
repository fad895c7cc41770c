"""Changes the default config of searches."""

import dataclasses

from gdp_grappler.placers.search import search_config


def changed(**parts):
  """Returns the default with other values, such as coarse={'passed_on': 3}."""
  default = search_config.DEFAULT
  return dataclasses.replace(
      default, **{
          name: dataclasses.replace(getattr(default, name), **fields)
          for name, fields in parts.items()
      })


def patch(monkeypatch, **parts):
  """Makes `changed(**parts)` the default."""
  monkeypatch.setattr(search_config, 'DEFAULT', changed(**parts))
