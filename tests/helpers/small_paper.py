"""To be imported by programs of a test: a part of the papers has few columns.

Of the placers that are learned, which import TensorFlow in each cell, it has
one.
"""

import dataclasses

from benchmarks.paper import parts

_KEPT = {'gpu_only', 'human_expert', 'min_cut', 'hdp'}
_hdp = parts.PARTS['hdp']
parts.PARTS['hdp'] = dataclasses.replace(
    _hdp, columns=tuple(c for c in _hdp.columns if c.name in _KEPT),
    ratios=tuple(r for r in _hdp.ratios if {r.other, r.ours} <= _KEPT),
    searches=tuple(name for name in _hdp.searches if name in _KEPT))
