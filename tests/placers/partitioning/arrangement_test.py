import numpy as np

from gdp_grappler.cluster import presets
from gdp_grappler.placers import group_graph
from gdp_grappler.placers.partitioning import arrangement
from gdp_grappler.placers.partitioning import partitioning
from helpers import graphs
from helpers import problems


def test_parts_that_talk_come_close_and_pins_are_met():
  cluster = presets.preset('2x2xP100-eth10')
  gpus = [i for i, d in enumerate(cluster.devices) if d.type == 'GPU']
  graph = graphs.make_graph([(0, 2, 1 << 30), (1, 3, 1 << 30), (0, 1, 1)],
                            flops=1e9)
  problem = problems.make(graph, cluster)
  workers = np.array(gpus)
  target = partitioning.make_target(
      problem, workers, group_graph.build(graph, problem.busy_seconds, workers))
  parts = arrangement.arrange(np.arange(4), target, problem.allowed)
  hosts = [
      cluster.device_names[target.devices[p]].split('/device')[0] for p in parts
  ]
  assert sorted(parts) == [0, 1, 2, 3]
  assert hosts[0] == hosts[2] and hosts[1] == hosts[3] != hosts[0]
  allowed = np.ones_like(problem.allowed)
  allowed[1] = np.arange(cluster.num_devices) == gpus[3]
  assert arrangement.arrange(np.arange(4), target, allowed)[1] == 3
