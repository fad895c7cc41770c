"""Shortens the timing of links and buses in programs that import this module.

The times are less exact, which does not matter to the tests.
"""

from __future__ import annotations

import functools

from gdp_grappler.evaluation.link_timing import ping_pong
from gdp_grappler.evaluation.profiling import contention

_SIZES = 1, 1 << 12, 1 << 20

ping_pong._BUDGET_S, ping_pong._ROUNDS = .05, 3
ping_pong._COPIES = (1 << 10, 8), (1 << 20, 2)
ping_pong.measure = functools.partial(ping_pong.measure, sizes=_SIZES)
contention._ROUNDS, contention._WINDOW_S = 1, .1
