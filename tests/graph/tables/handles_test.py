import pytest
import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.graph import variable_names
from gdp_grappler.graph.tables import handles
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import view as view_lib


@pytest.fixture(name='view', params=[True, False], ids=['handle', 'ref'])
def _view(request):
  with tf.Graph().as_default() as graph:
    variable = tf.compat.v1.get_variable('words', (7, 2),
                                         use_resource=request.param)
    if request.param:
      tf.raw_ops.VarIsInitializedOp(resource=variable.handle, name='known')
      tf.raw_ops.VariableShape(input=variable.handle, name='shape')
    else:
      tf.raw_ops.IsVariableInitialized(ref=variable._ref(), name='known')
  return view_lib.View(source_graph.SourceGraph('g', graph.as_graph_def()))


def test_parts_of_a_variable_have_their_rows_and_names(view):
  node = view.nodes['words']
  variable_names.mark(node, 'layer/words')
  split = handles.split(node, (4, 3), 0)
  writer = parts.Writer(view.nodes)
  written = handles.write(node, split, writer, view)
  assert written.names == ('words/part_0', 'words/part_1')
  assert [handles.shape_of(n) for n in writer.nodes] == [(4, 2), (3, 2)]
  assert [variable_names.of(n) for n in writer.nodes
         ] == ['layer/words_part_0', 'layer/words_part_1']
  shared = [n.attr['shared_name'].s for n in writer.nodes]
  assert len(set(shared)) == 2


def test_what_is_asked_of_the_whole_is_answered(view):
  split = handles.split(view.nodes['words'], (4, 3), 0)
  writer = parts.Writer(view.nodes)
  assert handles.ask(view.nodes['known'], split, writer) == ('known',)
  assert writer.nodes[-1].op == 'LogicalAnd' and len(writer.nodes) == 3
  if 'shape' in view.nodes:
    assert handles.ask(view.nodes['shape'], split, writer) == ('shape',)
  assert handles.ask(view.nodes['words'], split, writer) == ()
