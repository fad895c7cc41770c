"""Which changes can be in parts; what they compute is in `rewriting_test`."""

import pytest
import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.tables import handles
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import updates
from gdp_grappler.graph.tables import values
from gdp_grappler.graph.tables import view as view_lib


def _made(change, axis=0, slots=('words', 'slot')):
  with tf.Graph().as_default() as graph:
    made = [
        tf.compat.v1.get_variable(name, (7, 2), use_resource=True)
        for name in ('words', 'slot')
    ]
    change(*(variable.handle for variable in made))
  view = view_lib.View(source_graph.SourceGraph('g', graph.as_graph_def()))
  writer = parts.Writer(view.nodes)
  sizes = (4, 3) if not axis else (1, 1)
  split = {
      name:
          handles.write(view.nodes[name],
                        handles.split(view.nodes[name], sizes, axis), writer,
                        view) for name in slots
  }
  done = updates.write(view.nodes['change'], split,
                       values.Values(view, writer, split))
  return done, {node.name: node for node in writer.nodes}


def _dense(words, slot):
  tf.raw_ops.ResourceApplyAdagrad(var=words, accum=slot, lr=.1, grad=tf.ones(
      (7, 2)), name='change')


def _sparse(words, slot):
  tf.raw_ops.ResourceSparseApplyAdagrad(var=words, accum=slot, lr=.1,
                                        grad=tf.ones((3, 2)), indices=[0, 6, 0],
                                        name='change')


def _by_position(words, slot):
  del slot
  tf.raw_ops.ResourceScatterNdUpdate(ref=words, indices=[[0]], updates=tf.ones(
      (1, 2)), name='change')


@pytest.mark.parametrize('change', [_dense, _sparse])
def test_each_part_is_changed_with_its_slot(change):
  done, nodes = _made(change)
  assert done == ('change/part_0', 'change/part_1')
  for i, name in enumerate(done):
    assert list(nodes[name].input[:2]) == [f'words/part_{i}', f'slot/part_{i}']


@pytest.mark.parametrize('change, axis, slots',
                         [(_by_position, 0, ('words', 'slot')),
                          (_sparse, 1, ('words', 'slot')),
                          (_dense, 0, ('words',))],
                         ids=['by position', 'rows of columns', 'a whole slot'])
def test_what_no_part_can_do_alone_is_left_alone(change, axis, slots):
  assert _made(change, axis, slots)[0] == ()
