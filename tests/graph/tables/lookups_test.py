import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.tables import lookups
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import view as view_lib

_TABLE = np.arange(14, dtype=np.float32).reshape(7, 2)
_FLOAT = parts.Type(tf.float32.as_datatype_enum)


def _graph(ids, axis=0):
  with tf.Graph().as_default() as graph:
    table = tf.constant(_TABLE, name='table')
    tf.gather(table, tf.constant(ids, tf.int64, name='ids'), axis=axis,
              name='rows')
  return graph.as_graph_def()


def _written(graph_def, axis=0):
  view = view_lib.View(source_graph.SourceGraph('g', graph_def))
  writer = parts.Writer(view.nodes)
  for node in view.nodes.values():
    if node.name != 'rows':
      writer.keep(node)
  split = parts.Split((), 0, (3, 3, 1), (7, 2), _FLOAT)
  split = parts.Split(writer.cut('table', split, 'cut'), axis, split.sizes,
                      split.shape, _FLOAT)
  done = lookups.write(view.nodes['rows'], split, view, writer)
  return done, writer.graph_def(graph_def)


@pytest.mark.parametrize('ids', [[0, 6, 3, 3], [[2, 5], [6, 0]], 4, []])
def test_rows_are_those_of_the_whole(ids):
  done, graph_def = _written(_graph(ids))
  assert done
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name='')
    with tf.compat.v1.Session(graph=graph) as session:
      np.testing.assert_array_equal(session.run('rows:0'),
                                    _TABLE[np.array(ids, np.int64)])


@pytest.mark.parametrize('gathered, split', [(1, 0), (0, 1)])
def test_other_axes_are_left_alone(gathered, split):
  assert not _written(_graph([0, 1], gathered), split)[0]
