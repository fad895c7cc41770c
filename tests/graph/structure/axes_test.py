from gdp_grappler.graph.structure import axes as axes_lib
from gdp_grappler.graph.structure import coordinates
from helpers import graphs
from helpers import recurrent
from helpers import unrolled


def test_parts_of_layers_are_an_axis():
  graph = recurrent.two_readers(5)
  axes = axes_lib.of(coordinates.of(graph))
  products = [
      op for op, name in enumerate(graph.names)
      if '/step3/' in name and name[-2:] in ('/x', '/h')
  ]
  assert len({*axes['layer_part'][products].tolist()}) == 6


def test_axes_have_no_gaps_and_differ():
  axes = axes_lib.of(coordinates.of(unrolled.make(3, 4).graph))
  assert {'layer', 'segment'} <= set(axes)
  columns = {column.tobytes() for column in axes.values()}
  assert len(columns) == len(axes)
  assert all(column.min() == 0 for column in axes.values())


def test_a_chain_has_no_axis():
  assert not axes_lib.of(coordinates.of(graphs.chain(9)))
