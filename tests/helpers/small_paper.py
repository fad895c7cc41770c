"""Reduces the columns of the papers in programs that import this module.

Learned placers import TensorFlow in each cell, so only one of them remains.
"""

import dataclasses

from benchmarks.paper import parts

_KEPT = {'gpu_only', 'human_expert', 'min_cut', 'hdp'}
_hdp = parts.PARTS['hdp']
parts.PARTS['hdp'] = dataclasses.replace(
    _hdp, columns=tuple(c for c in _hdp.columns if c.name in _KEPT),
    ratios=tuple(r for r in _hdp.ratios if {r.other, r.ours} <= _KEPT),
    searches=tuple(name for name in _hdp.searches if name in _KEPT))
