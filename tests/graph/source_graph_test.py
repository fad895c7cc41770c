from gdp_grappler.graph import source_graph
from helpers import graph_defs

_GRAPH = graph_defs.graph_def(graph_defs.node('a', 'NoOp'))


def test_what_is_written_is_read():
  source = source_graph.SourceGraph('ü', _GRAPH, ('a',), ('b', 'c'), ('d',))
  data = source.to_meta_graph().SerializeToString()
  meta_graph = type(source.to_meta_graph()).FromString(data)
  assert source_graph.is_captured(meta_graph)
  found = source_graph.from_meta_graph(meta_graph)
  assert (found.name, found.graph_def, found.feeds, found.fetches,
          found.devices) == ('ü', _GRAPH, ('a',), ('b', 'c'), ('d',))


def test_nothing_is_not_the_same_as_not_said():
  source = source_graph.SourceGraph('g', _GRAPH)
  found = source_graph.from_meta_graph(source.to_meta_graph())
  assert found.feeds == found.fetches == found.devices == ()
  meta_graph = source.to_meta_graph()
  del meta_graph.collection_def['gdp_name']
  assert not source_graph.is_captured(meta_graph)


def test_the_graph_is_copied():
  source = source_graph.SourceGraph('g', _GRAPH)
  source.to_meta_graph().graph_def.node.add(name='b')
  assert len(_GRAPH.node) == 1
