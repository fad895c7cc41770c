import numpy as np

from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import random_placer
from helpers import clusters
from helpers import graphs


def test_allowed_devices_are_equally_likely():
  n = 3000
  types = np.ones((n, 2), bool)
  types[::2, 1] = False
  graph = graphs.make_graph(num_ops=n, allowed_types=types)
  problem = placer_lib.Problem(graph, clusters.make_cluster(2), None, seed=3)
  devices = random_placer.RandomPlacer().place(problem).devices
  assert (devices[::2] == 0).all()
  counts = np.bincount(devices[1::2], minlength=3)
  assert (abs(counts - 500) < 80).all()


def test_seeds_differ():
  graph = graphs.make_graph(num_ops=50)

  def place(seed):
    problem = placer_lib.Problem(graph, clusters.make_cluster(2), None, seed)
    return random_placer.RandomPlacer().place(problem).devices.tolist()

  assert place(0) == place(0) != place(1)
