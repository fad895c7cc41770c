"""The simulated peak against what TensorFlow's allocator recorded."""

import pathlib

import numpy as np
import pytest

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import measurer as measurer_lib
from gdp_grappler.evaluation import profiled_costs
from gdp_grappler.evaluation import profiler
from gdp_grappler.evaluation import simulator
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import sources

_TESTDATA = pathlib.Path(__file__).parents[1] / 'testdata'


# The loop of the LSTM pushes its weights on lists for the backward pass, once
# per iteration. Each time it is the variable's own buffer, but the list counts
# as so many copies, which is all that the simulation has too much.
@pytest.mark.parametrize('name,low,high', [('dense', .8, 1.25),
                                           ('lstm', .8, 2.)])
def test_simulated_peak_is_the_allocator_s(name, low, high, tmp_path):
  source = sources.load(str(_TESTDATA / f'{name}_train_step.pb'))
  graph = graph_def_io.read(source)
  cluster = local_devices.local_cluster([cluster_lib.local_name('CPU', 0)])
  placement = placement_lib.Placement(np.zeros(graph.num_ops, np.int32),
                                      cluster)
  with measurer_lib.Measurer(source, cluster, steps=2, warmup=1,
                             budget_s=.1) as measurer:
    measured, = measurer.evaluate(graph, placement).peak_bytes
  profile = profiler.profile_graph(source, steps=2, cache_dir=tmp_path)
  for costs in None, profiled_costs.ProfiledCostModel(profile):
    simulated, = simulator.Simulator(cluster, costs).evaluate(
        graph, placement).peak_bytes
    assert low < simulated / measured < high
  assert measured > graph.param_bytes.sum()
