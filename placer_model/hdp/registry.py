"""The planners by name."""

from __future__ import annotations

from typing import Callable

from gdp_grappler.placers import placer as placer_lib
from placer_model.hdp import coloc_rl
from placer_model.hdp import placers

PLACERS: dict[str, Callable[[], placer_lib.Placer]] = {
    'coloc_rl': coloc_rl.ColocRlPlacer,
    'hdp': placers.HdpPlacer,
    'hdp_no_grouping': placers.HdpNoGroupingPlacer,
    'hdp_random_grouping': placers.HdpRandomGroupingPlacer,
}
