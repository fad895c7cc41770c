from gdp_grappler.placers.list_scheduling import reservations
from helpers import graphs


def test_the_share_that_is_alive():
  # A chain needs two of its tensors at a time.
  graph = graphs.chain(5, 100, param_bytes=[7, 0, 0, 0, 0])
  assert reservations.alive_share(graph) == .5
  assert reservations.alive_share(graphs.make_graph(num_ops=3)) == 1
  assert reservations.group_bytes(graph, .5).tolist() == [57, 50, 50, 50, 0]
