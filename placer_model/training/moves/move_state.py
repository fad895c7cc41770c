"""State of a graph in a run of the move network, saved in checkpoints."""

from __future__ import annotations

import base64
import json
from typing import Any, Callable
import zlib

import numpy as np
import tensorflow as tf

from gdp_grappler import files
from placer_model.training import run_state

# Origins of priced placements.
BASELINE, DRAFT, POLICY = 'baseline', 'draft', 'policy'
GDP, SEARCH = 'gdp', 'search'
ORIGINS = (BASELINE, DRAFT, POLICY, GDP, SEARCH)


def _are_by_origin(value: Any) -> bool:
  return isinstance(value, dict) and {*value} == {*ORIGINS}


def _are_seconds(value: Any) -> bool:
  return _are_by_origin(value) and all(map(run_state.is_number, value.values()))


def _are_counts(value: Any) -> bool:
  return _are_by_origin(value) and all(map(run_state.is_count, value.values()))


def _are_numbers(value: Any) -> bool:
  return isinstance(value, list) and all(map(run_state.is_number, value))


def _are_origins(value: Any) -> bool:
  return isinstance(value, list) and all(each in ORIGINS for each in value)


# Attributes that are placements.
_PLACEMENTS = 'elites', 'drafts', 'by_gdp'
# For each attribute, whether a value from a checkpoint is acceptable.
_KINDS: dict[str, Callable[[Any], bool]] = {
    'iteration': run_state.is_count, 'evaluations': _are_counts,
    'best_s': _are_seconds, 'seconds': run_state.is_number,
    'gdp_s': run_state.is_number, 'curve': run_state.is_curve,
    'gains': _are_numbers, 'elite_s': _are_numbers,
    'elite_origins': _are_origins,
    **dict.fromkeys(_PLACEMENTS, lambda value: isinstance(value, str))
}  # yapf: disable


class MoveState(tf.train.experimental.PythonState):
  """Counters, the drafts, and the best placements of one graph.

  There is no random state. Each iteration seeds its own generator from the
  run's seed and its number, so a resumed run draws the same numbers as an
  uninterrupted one.

  Attributes:
    iteration: Number of iterations done.
    evaluations: Number of placements priced, by origin.
    best_s: Best price so far by origin, in seconds; infinite where there is
      none.
    seconds: Time spent so far, in all processes of the run.
    gdp_s: Part of `seconds` that the default placer took.
    curve: Pairs (evaluations so far, best price), one per improvement.
    gains: Mean gain per price of each iteration.
    elites: int32 [E, G], the best placements that fit, the best first.
    elite_s: [E], their prices in seconds.
    elite_origins: [E], their origins, of `ORIGINS`.
    drafts: int32 [S, G], placements that episodes may start with.
    by_gdp: int32 [0 or 1, G], result of the default placer.
  """

  def __init__(self, allowed: np.ndarray, most: int) -> None:
    """Makes the state of a run that has not begun.

    Args:
      allowed: bool [G, D], allowed devices of each group. Placements in a
        checkpoint are checked against it.
      most: Number of best placements that are kept.
    """
    self._allowed, self._most = allowed, most
    self.iteration = 0
    self.evaluations = dict.fromkeys(ORIGINS, 0)
    self.best_s = dict.fromkeys(ORIGINS, np.inf)
    self.seconds = self.gdp_s = 0.
    self.curve: list[tuple[int, float]] = []
    self.gains: list[float] = []
    self.elites = np.zeros((0, len(allowed)), np.int32)
    self.elite_s: list[float] = []
    self.elite_origins: list[str] = []
    self.drafts = self.by_gdp = np.zeros((0, len(allowed)), np.int32)

  @property
  def total_evaluations(self) -> int:
    """Number of placements priced so far, of all origins."""
    return sum(self.evaluations.values())

  @property
  def best_step_time_s(self) -> float:
    """The best price in seconds; infinite while nothing fits."""
    return self.elite_s[0] if self.elite_s else np.inf

  @property
  def best_origin(self) -> str:
    """Origin of the best placement; '' while nothing fits."""
    return self.elite_origins[0] if self.elite_origins else ''

  @property
  def best_decisions(self) -> np.ndarray | None:
    """The best placement, int32 [G]; None while nothing fits."""
    return self.elites[0] if self.elite_s else None

  def record(self, devices: np.ndarray, seconds: np.ndarray, origin: str,
             evaluations: int) -> None:
    """Counts prices, and keeps the best placements.

    Args:
      devices: int [K, G], placements.
      seconds: float [K], their prices; infinite for a placement that does not
        fit.
      origin: Origin of the placements, one of `ORIGINS`.
      evaluations: Number of placements to add to the count of this origin.
    """
    self.evaluations[origin] += evaluations
    before = self.best_step_time_s
    known = {row.tobytes() for row in self.elites}
    for row in np.argsort(seconds, kind='stable')[:self._most]:
      self.best_s[origin] = min(self.best_s[origin], float(seconds[row]))
      placed = np.array(devices[row], np.int32)
      if np.isfinite(seconds[row]) and placed.tobytes() not in known:
        self._keep(placed, float(seconds[row]), origin)
    if self.best_step_time_s < before:
      self.curve.append((self.total_evaluations, self.best_step_time_s))

  def _keep(self, placed: np.ndarray, seconds: float, origin: str) -> None:
    rows = [*self.elites, placed]
    every = [*self.elite_s, seconds]
    origins = [*self.elite_origins, origin]
    order = np.argsort(every, kind='stable')[:self._most]
    self.elites = np.stack([rows[k] for k in order])
    self.elite_s = [every[k] for k in order]
    self.elite_origins = [origins[k] for k in order]

  def serialize(self) -> str:
    """Returns the state as text, for a checkpoint."""
    fields = {name: getattr(self, name) for name in _KINDS}
    for name in _PLACEMENTS:
      fields[name] = _packed(fields[name])
    return json.dumps(fields)

  def deserialize(self, string_value: str) -> None:
    """Restores the result of `serialize`.

    Raises:
      ValueError: the text is not a valid state. A checkpoint may be from an
        untrusted source.
    """
    fields = files.parse_json(string_value)
    if (not isinstance(fields, dict) or fields.keys() != _KINDS.keys() or
        not all(fits(fields[name]) for name, fits in _KINDS.items())):
      raise ValueError('it holds no state of a run')
    for name in _PLACEMENTS:
      fields[name] = self._unpacked(fields[name])
    if not len(fields['elites']) == len(fields['elite_s']) == len(
        fields['elite_origins']):
      raise ValueError('its placements and prices do not match')
    fields['curve'] = [tuple(pair) for pair in fields['curve']]
    self.__dict__.update(fields)

  def _unpacked(self, text: str) -> np.ndarray:
    """Returns legal placements, int32 [K, G]."""
    groups, devices = self._allowed.shape
    try:
      data = zlib.decompress(base64.b64decode(text, validate=True))
    except zlib.error as error:
      raise ValueError('its placements are damaged') from error
    if len(data) % (2 * groups or 2):
      raise ValueError('its placements are none of this graph')
    rows = np.frombuffer(data, np.int16).reshape(-1, groups).astype(np.int32)
    if not (((rows >= 0) & (rows < devices)).all() and
            self._allowed[np.arange(groups), rows].all()):
      raise ValueError('its placements are none of this graph')
    return rows


def _packed(rows: np.ndarray) -> str:
  return base64.b64encode(zlib.compress(rows.astype(
      np.int16).tobytes())).decode()
