import numpy as np

from gdp_grappler.placers.simple import random_placer
from helpers import graphs
from helpers import problems


def test_allowed_devices_are_equally_likely():
  n = 3000
  types = np.ones((n, 2), bool)
  types[::2, 1] = False
  graph = graphs.make_graph(num_ops=n, allowed_types=types)
  devices = problems.placed(random_placer.RandomPlacer(), graph, seed=3)
  assert (devices[::2] == 0).all()
  counts = np.bincount(devices[1::2], minlength=3)
  assert (abs(counts - 500) < 80).all()


def test_seeds_differ():
  graph = graphs.make_graph(num_ops=50)

  def place(seed):
    return problems.placed(random_placer.RandomPlacer(), graph,
                           seed=seed).tolist()

  assert place(0) == place(0) != place(1)
