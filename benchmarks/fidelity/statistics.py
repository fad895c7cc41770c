"""Statistics of the agreement of simulated and measured step times."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import stats


@dataclasses.dataclass(frozen=True)
class Agreement:
  """Agreement of simulated and measured steps of K placements of a graph.

  Attributes:
    count: K.
    mape: Mean of |simulated - measured| / measured.
    bias: Median of simulated / measured; 1 means no bias.
    spearman: Rank correlation (Spearman 1904).
    kendall: Rank correlation tau-b (Kendall 1945).
    rank_of_best: Rank, from 1, of the best simulated step by measured steps.
    regret: Measured step of the best simulated placement, over the shortest.
  """

  count: int
  mape: float
  bias: float
  spearman: float
  kendall: float
  rank_of_best: int
  regret: float


def agreement(simulated_s: np.ndarray, measured_s: np.ndarray) -> Agreement:
  """Compares two arrays, float [K], of finite steps."""
  simulated_s, measured_s = np.asarray(simulated_s), np.asarray(measured_s)
  best = int(simulated_s.argmin())
  return Agreement(
      count=len(measured_s),
      mape=float(np.mean(np.abs(simulated_s / measured_s - 1))),
      bias=float(np.median(simulated_s / measured_s)),
      spearman=float(stats.spearmanr(simulated_s, measured_s).statistic),
      kendall=float(stats.kendalltau(simulated_s, measured_s).statistic),
      rank_of_best=1 + int((measured_s < measured_s[best]).sum()),
      regret=float(measured_s[best] / measured_s.min()))
