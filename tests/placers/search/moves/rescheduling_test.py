"""How often sets are placed anew, and by what."""

from __future__ import annotations

import numpy as np
import pytest

from gdp_grappler.placers.search.moves import rescheduling


class _Features:
  """Says that it did as it was told, and remembers that."""

  def reschedule(self, devices, places, allowed, weights, most):
    """As `featurizer.MoveFeaturizer`."""
    self.places, self.allowed, self.most = places, allowed, most
    self.late, self.sent, self.busy = weights.T
    assert len(devices) == len(places) == len(weights)
    return places


def _asked(seed: int = 0, **fields: object) -> _Features:
  """What is asked of 2000 moves."""
  features = _Features()
  rows = np.zeros((2000, 3), np.int32)
  done = rescheduling.reschedule(rescheduling.ReschedulingConfig(**fields),
                                 features, np.ones((3, 2), bool), rows,
                                 np.random.default_rng(seed))
  assert done is features.places
  return features


@pytest.mark.parametrize('share', [0., .3, 1.])
def test_so_many_are_placed_anew(share):
  asked = _asked(share=share, most=7)
  assert asked.places.mean() == pytest.approx(share, abs=.04)
  assert asked.allowed.shape == (3, 2) and asked.most == 7


@pytest.mark.parametrize('name', ['late', 'sent', 'busy'])
def test_weights_are_drawn_between_their_bounds(name):
  asked = _asked(zero_late=0., **{name: (.01, 100.)})
  sizes = np.log10(getattr(asked, name))
  assert -2 <= sizes.min() < -1.9 and 1.9 < sizes.max() <= 2
  # Every order of magnitude alike.
  assert np.histogram(sizes, [-2, -1, 0, 1, 2])[0] == pytest.approx(500, abs=90)


def test_a_weight_may_be_given():
  asked = _asked(zero_late=0., late=(2., 2.))
  assert (asked.late == 2).all()


@pytest.mark.parametrize('zero_late', [0., .2, 1.])
def test_so_many_do_not_care_what_is_late(zero_late):
  asked = _asked(zero_late=zero_late)
  assert (asked.late == 0).mean() == pytest.approx(zero_late, abs=.04)
  assert asked.sent.min() > 0 and asked.busy.min() > 0


def test_a_seed_decides():
  one, same, other = _asked(), _asked(), _asked(seed=1)
  for name in ('places', 'late', 'sent', 'busy'):
    assert (getattr(one, name) == getattr(same, name)).all()
    assert (getattr(one, name) != getattr(other, name)).any()
