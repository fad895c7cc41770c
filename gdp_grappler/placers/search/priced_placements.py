"""A population of placements: each with its price, none of them twice."""

from __future__ import annotations

import math
from typing import Iterable, Sequence

import numpy as np

from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.graph import op_graph


class PricedPlacements:
  """Different placements of the groups of one graph, with their prices.

  Each placement has a source: the name of the first placer that proposed it, or
  of a part of this placer. A source may be empty.
  """

  def __init__(self, graph: op_graph.OpGraph,
               evaluator: evaluator_lib.Evaluator) -> None:
    self._graph, self._evaluator = graph, evaluator
    self._weights = np.random.default_rng(0).integers(
        np.iinfo(np.int64).max, size=graph.num_groups)
    self._rows: dict[int, int] = {}
    self._devices: list[np.ndarray] = []
    self._sources: list[str] = []
    self._prices: evaluator_lib.Prices | None = None

  @property
  def prices(self) -> evaluator_lib.Prices:
    """[K], prices of all placements; there has to be one placement."""
    assert self._prices is not None
    return self._prices

  @property
  def devices(self) -> np.ndarray:
    """int32 [K, G], in the order of `prices`."""
    return np.stack(self._devices)

  @property
  def best(self) -> np.ndarray:
    """int32 [G], the best placement by price."""
    return self._devices[self.prices.best()]

  @property
  def sources(self) -> tuple[str, ...]:
    """[K], the source of each placement, in the order of `prices`."""
    return tuple(self._sources)

  def ranked(self, most: int) -> np.ndarray:
    """int32 [at most `most`, G], the best by price, the best first."""
    return np.stack([self._devices[k] for k in self.prices.ranking()[:most]])

  def varied(self, most: int, share: float) -> np.ndarray:
    """int32 [at most `most`, G], good placements that differ, the best first.

    Most of the best placements by price are moves from one placement, so they
    differ in few groups only.

    Args:
      most: Largest number of placements.
      share: Least share of the groups in which a placement differs from each
        better placement of the result. Groups whose device is the same in all
        placements do not count.
    """
    return self._differing(self.prices.ranking(), most, share)

  def varied_sources(self, most: int, share: float) -> np.ndarray:
    """int32 [at most `most`, G], the best of different sources; see `varied`.

    Args:
      most: Largest number of placements.
      share: See `varied`.
    """
    return self._differing(self._first_of_each().values(), most, share)

  def _differing(self, ranking: Iterable[int], most: int,
                 share: float) -> np.ndarray:
    rows = self.devices
    rows = rows[:, (rows != rows[0]).any(axis=0)]
    chosen: list[int] = []
    for k in ranking:
      if all((rows[k] != rows[other]).mean() >= share for other in chosen):
        chosen.append(k)
      if len(chosen) == most:
        break
    return np.stack([self._devices[k] for k in chosen])

  def best_of_each(self) -> dict[str, np.ndarray]:
    """int32 [G], the best placement of each source, the best source first."""
    return {
        source: self._devices[k] for source, k in self._first_of_each().items()
    }

  def _first_of_each(self) -> dict[str, int]:
    """Index of the best placement of each source, the best source first."""
    result: dict[str, int] = {}
    for k in self.prices.ranking():
      result.setdefault(self._sources[k], k)
    return result

  @property
  def fits(self) -> bool:
    """Whether a placement fits into the memories and runs."""
    return bool(self.prices.valid.any())

  @property
  def fastest_fits(self) -> bool:
    """Whether a placement fits, and none that overflows a memory is faster."""
    seconds, valid = self.prices.seconds, self.prices.valid_seconds.min()
    return self.fits and bool((seconds >= valid).all())

  def contains(self, row: np.ndarray) -> bool:
    """Whether a placement, int [G], was priced."""
    return self._keys(np.asarray(row, np.int32)[None])[0] in self._rows

  def unpriced(self, devices: np.ndarray) -> list[int]:
    """Indices of placements int32 [K, G] that were not priced.

    Of several equal placements, the result has only the index of the first one,
    in the place of the last one.
    """
    first: dict[int, int] = {}
    for number, key in enumerate(self._keys(devices)):
      first[key] = first.pop(key, number)
    return [number for key, number in first.items() if key not in self._rows]

  def ceiling_s(self, most: int) -> float:
    """Step above which a placement is none of the `most` best, in seconds.

    It is infinite as long as fewer than `most` placements fit.
    """
    if len(self._devices) < most:
      return math.inf
    last = self.prices.ranking()[most - 1]
    return float(self.prices.valid_seconds[last])

  def add(
      self, devices: Iterable[np.ndarray], source: str | Sequence[str] = '',
      ceiling_s: evaluator_lib.Ceiling | None = math.inf
  ) -> evaluator_lib.Prices:
    """Adds placements, K times int [G], and returns their prices [K].

    A placement that was added before is not priced again.

    Args:
      devices: K of int [G].
      source: Name of the placer that proposes them, or a name for each.
      ceiling_s: Ceilings of the placements that are priced now; see
        `Evaluator.price_groups`.
    """
    rows = [np.asarray(row, np.int32) for row in devices]
    keys = [self._keys(row[None])[0] for row in rows]
    names = [source] * len(rows) if isinstance(source, str) else source
    fresh: dict[int, tuple[np.ndarray, str]] = {}
    for key, row, name in zip(keys, rows, names, strict=True):
      if key not in self._rows:
        fresh.setdefault(key, (row, name))
    if fresh:
      devices = np.stack([row for row, _ in fresh.values()])
      self._append(
          fresh, self._evaluator.price_groups(self._graph, devices, ceiling_s))
    return self.prices[np.array([self._rows[key] for key in keys], int)]

  def add_if_best(self, row: np.ndarray, source: str) -> None:
    """Adds a placement, int [G], if it is better than all so far.

    So a poor placement takes no part in `best_of_each` and `varied_sources`.

    Args:
      row: int [G], the placement. At least one placement was added before.
      source: Name of the placer that proposes it.
    """
    row = np.asarray(row, np.int32)
    prices = self._evaluator.price_groups(self._graph, row[None])
    if prices.keys()[0] < min(self.prices.keys()):
      self._append({self._keys(row[None])[0]: (row, source)}, prices)

  def add_priced(self, others: PricedPlacements, source: str) -> None:
    """Adds priced placements of another object, with their prices.

    Args:
      others: Placements of the same groups, by an evaluator with the same
        prices.
      source: Name of the placer that proposes those that have no source yet.
    """
    fresh = [key for key in others._rows if key not in self._rows]
    rows = [others._rows[key] for key in fresh]
    if fresh:
      self._append(
          {
              key: (others._devices[row], others._sources[row] or source)
              for key, row in zip(fresh, rows)
          }, others.prices[np.array(rows, int)])

  def _keys(self, devices: np.ndarray) -> list[int]:
    """Hashes of placements int32 [K, G]: sums of the devices, with weights.

    Two different placements have equal hashes with a probability of about
    2^-60. The bytes of a placement of a large graph would take too long.
    """
    return np.einsum('kg,g->k', devices, self._weights).tolist()

  def _append(self, fresh: dict[int, tuple[np.ndarray, str]],
              prices: evaluator_lib.Prices) -> None:
    """Adds different placements that are not known, with their sources."""
    self._prices = (prices if self._prices is None else
                    self._prices.followed_by(prices))
    for key, (row, source) in fresh.items():
      self._rows[key] = len(self._devices)
      self._devices.append(row)
      self._sources.append(source)

  def faster_overflowing(self, most: int) -> np.ndarray:
    """int32 [K, G], placements that overflow but are faster than all that fit.

    Args:
      most: Number of the fastest such placements in the result, and of those
        with the least overflow.
    """
    seconds, overflow = self.prices.seconds, self.prices.overflow_bytes
    faster = np.flatnonzero(seconds < self.prices.valid_seconds.min())
    chosen = dict.fromkeys([
        *faster[np.argsort(seconds[faster], kind='stable')][:most],
        *faster[np.argsort(overflow[faster], kind='stable')][:most]
    ])
    return np.array([self._devices[k] for k in chosen],
                    np.int32).reshape(-1, self._graph.num_groups)
