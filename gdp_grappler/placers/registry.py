"""Placers by name."""

from __future__ import annotations

import difflib
import importlib

from gdp_grappler import errors
from gdp_grappler.placers import placer as placer_lib

# Name -> module and class. Imported when asked for, so that a missing optional
# library only matters to who wants it.
_PLACERS = {
    'best_of': ('best_of', 'BestOfPlacer'),
    'gdp': ('learned', 'LearnedPlacer'),
    'heft': ('list_scheduling.heft', 'HeftPlacer'),
    'human_expert': ('human_expert', 'HumanExpertPlacer'),
    'local_search': ('local_search', 'LocalSearchPlacer'),
    'm_etf': ('list_scheduling.m_etf', 'MEtfPlacer'),
    'm_sct': ('list_scheduling.m_sct', 'MSctPlacer'),
    'm_topo': ('list_scheduling.m_topo', 'MTopoPlacer'),
    'metis': ('partitioning.metis', 'MetisPlacer'),
    'min_cut': ('partitioning.min_cut', 'MinCutPlacer'),
    'mt_kahypar': ('partitioning.mt_kahypar', 'MtKahyparPlacer'),
    'random': ('random_placer', 'RandomPlacer'),
    'round_robin': ('round_robin', 'RoundRobinPlacer'),
    'scotch': ('partitioning.scotch', 'ScotchPlacer'),
    'single_device': ('single_device', 'SingleDevicePlacer'),
}
LEARNED = 'gdp'


def names() -> tuple[str, ...]:
  """All names, sorted."""
  return tuple(sorted(_PLACERS))


def create(name: str, policy: str | None = None) -> placer_lib.Placer:
  """Makes a placer.

  Args:
    name: One of `names()`.
    policy: Folder of the policy, for the learned placer; the shipped one if
      None.

  Raises:
    GdpError: no such placer, or what it needs is missing.
  """
  if name not in _PLACERS:
    near = difflib.get_close_matches(name, _PLACERS, 1)
    hint = f' Did you mean "{near[0]}"?' if near else ''
    raise errors.GdpError(f'Unknown placer "{name}". Placers: '
                          f'{", ".join(names())}.{hint}')
  module_name, class_name = _PLACERS[name]
  module = importlib.import_module(f'gdp_grappler.placers.{module_name}')
  kind = getattr(module, class_name)
  return kind(policy) if name == LEARNED else kind()
