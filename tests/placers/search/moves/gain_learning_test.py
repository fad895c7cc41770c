import numpy as np

from gdp_grappler.placers.search.moves import gain_learning


def _moves(count, seed):
  """Inputs [count, 6] and gains [count], which the second input decides."""
  inputs = np.random.default_rng(seed).normal(size=(count, 6))
  return inputs.astype(np.float32), inputs[:, 1] > 0


def test_without_moves_the_logits_are_those_of_the_network():
  inputs, _ = _moves(5, 0)
  logits = np.arange(5.)
  learning = gain_learning.GainLearning()
  assert learning.corrected(inputs, logits).tolist() == logits.tolist()


def test_what_gained_here_is_preferred():
  learning = gain_learning.GainLearning()
  for seed in range(40):
    inputs, gained = _moves(4, seed)
    learning.learn(inputs, np.zeros(4), gained)
  inputs, gains = _moves(400, 99)
  found = learning.corrected(inputs, np.zeros(400)) > 0
  assert (found == gains).mean() > .9


def test_few_moves_change_little():
  inputs, gained = _moves(4, 0)
  learning = gain_learning.GainLearning()
  learning.learn(inputs, np.zeros(4), gained)
  assert 0 < abs(learning.corrected(inputs, np.zeros(4))).max() < 1


def test_moves_that_the_network_foresaw_teach_nothing():
  inputs, gained = _moves(40, 0)
  learning = gain_learning.GainLearning()
  learning.learn(inputs, np.where(gained, 25., -25.), gained)
  np.testing.assert_allclose(learning.corrected(inputs, np.zeros(40)), 0,
                             atol=1e-6)


def test_the_order_of_moves_hardly_matters():
  inputs, gained = _moves(200, 0)
  found = []
  for starts in range(0, 200, 4), range(196, -1, -4):
    learning = gain_learning.GainLearning()
    for k in starts:
      learning.learn(inputs[k:k + 4], np.zeros(4), gained[k:k + 4])
      corrected = learning.corrected(inputs, np.zeros(200))
    found.append(corrected)
  assert abs(found[0]).max() > 2
  np.testing.assert_allclose(found[0], found[1], atol=.1)


def test_logits_out_of_all_bounds_stay_finite():
  inputs, gained = _moves(8, 0)
  learning = gain_learning.GainLearning()
  learning.learn(1e3 * inputs, np.full(8, -1e6), gained)
  assert np.isfinite(learning.corrected(inputs, np.zeros(8))).all()
