import pytest

from gdp_grappler import errors
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


@pytest.mark.parametrize('change', [
    lambda m: m.graph_def.node.add(name='b', op='NoOp'),
    lambda m: setattr(m.graph_def.node[0], 'device', 'GPU:1'),
    lambda m: m.collection_def['gdp_fetches'].bytes_list.value.append(b'a'),
    lambda m: m.collection_def['gdp_digest'].Clear(),
])
def test_damage_shows_unless_somebody_says_that_it_is_none(change):
  meta_graph = source_graph.SourceGraph('g', _GRAPH).to_meta_graph()
  change(meta_graph)
  with pytest.raises(errors.InvalidGraphError, match='its digest differs'):
    source_graph.from_meta_graph(meta_graph)
  del meta_graph.collection_def['gdp_digest']
  source_graph.from_meta_graph(meta_graph)


@pytest.mark.parametrize('names', [[], [b'a', b'b']])
def test_a_graph_has_one_name(names):
  meta_graph = source_graph.SourceGraph('g', _GRAPH).to_meta_graph()
  del meta_graph.collection_def['gdp_digest']
  meta_graph.collection_def['gdp_name'].bytes_list.value[:] = names
  with pytest.raises(errors.InvalidGraphError, match='names'):
    source_graph.from_meta_graph(meta_graph)
