"""What ops read."""

from gdp_grappler.reports import node_inputs
from helpers import graphs


def test_outputs_are_numbered_and_control_edges_come_last():
  graph = graphs.make_graph([(0, 2), (0, 2, 8, 1), (1, 2, 8), (0, 1, 8)])
  # Outputs have the order in which `make_graph` meets them.
  assert node_inputs.of(graph) == [[], [node_inputs.Input(0, 1)],
                                   [
                                       node_inputs.Input(0, 0),
                                       node_inputs.Input(1, 0),
                                       node_inputs.Input(0, None)
                                   ]]
