import numpy as np
import pytest

from placer_model.training import divergences


def test_entropy_of_certain_and_even_choices():
  assert divergences.entropy(np.array([[1., 0.]])) == 0
  assert divergences.entropy(np.array([[.5, .5],
                                       [1.,
                                        0.]])) == pytest.approx(np.log(2) / 2)


def test_divergence_is_of_the_first_from_the_second():
  even, most = np.array([[.5, .5]]), np.array([[.75, .25]])
  assert divergences.divergence(even, even) == 0
  assert divergences.divergence(most, even) == pytest.approx(.75 * np.log(1.5)
                                                             + .25 * np.log(.5))
  assert divergences.divergence(even, np.array([[1., 0.]])) > 10
