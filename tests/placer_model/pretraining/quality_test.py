"""Figures that one can count by hand."""

from __future__ import annotations

import dataclasses

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.placers.search.moves import move_network
from placer_model.pretraining import logs
from placer_model.pretraining import quality


def _log(gains) -> logs.Log:
  """The feature of a move is its number."""
  gains = np.array(gains, np.float32)
  return logs.Log(
      np.arange(len(gains), dtype=np.float32)[:, None], gains,
      np.zeros(len(gains), np.int32))


def _network(logit: float, gain: float) -> move_network.MoveNetwork:
  """Both outputs rise or fall with the feature."""
  return move_network.MoveNetwork(('a',), [0.], [2.], [[1.]], [0.],
                                  [[logit, gain]], [0., 0.])


def test_by_hand():
  log = _log([-1, .1, -1, -1, -1, -1, .3, .1])
  found = quality.of_network(_network(1., 0.), log)
  assert found.moves == 8 and found.base_rate == pytest.approx(3 / 8)
  # Of 15 pairs, 1 + 5 + 5 are in order.
  assert found.auc == pytest.approx(11 / 15)
  assert found.kept == pytest.approx(2 / 3)
  assert found.kept_gain == pytest.approx(.8)
  assert quality.of_network(_network(-1., 0.), log).kept == pytest.approx(1 / 3)


def test_expected_gains_rank_as_far_as_they_count():
  log = _log([.5, 0., 0., 0.])
  network = _network(1., -9.)
  assert quality.of_network(network, log, gain_weight=0).kept == 0
  assert quality.of_network(network, log, gain_weight=1).kept == 1


def test_the_best_of_the_few_moves_that_are_priced():
  log = dataclasses.replace(_log([.4, 0, 0, 0, .1, 0, .2, 0, .3]),
                            rounds=np.array([0] * 6 + [1] * 3, np.int32))
  # The last four moves of the first round have .1 of .4.
  assert quality.best_few(np.arange(9.), log) == pytest.approx(.4 / .7)
  assert quality.best_few(-np.arange(9.), log) == 1


@hypothesis.settings(deadline=None)
@hypothesis.given(
    st.lists(st.tuples(st.sampled_from([0., 1., 2.]), st.booleans()),
             min_size=1, max_size=12))
def test_the_area_counts_pairs(rows):
  scores, good = (np.array(column) for column in zip(*rows))
  log = _log(np.where(good, .1, -.1))
  pairs = [
      1. if g > b else .5 if g == b else 0. for g in scores[good]
      for b in scores[~good]
  ]
  expected = np.mean(pairs) if pairs else .5
  assert quality.area_under_curve(scores, log) == pytest.approx(expected)


def test_where_nothing_gains_nothing_is_lost():
  found = quality.of_network(_network(1., 0.), _log([-1., -1.]))
  assert (found.auc, found.kept, found.kept_gain) == (.5, 1., 1.)
  assert found.best_few == 1
