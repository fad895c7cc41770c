"""What a graph is run for, and what that needs."""

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import pruning
from helpers import graph_defs

tf1 = tf.compat.v1


def _graph(*nodes):
  """From `(name, op, input, ...)`."""
  return graph_defs.graph_def(
      *(graph_defs.node(name, op, inputs) for name, op, *inputs in nodes))


_STEP = _graph(
    ('x', 'Placeholder'), ('v', 'VarHandleOp'), ('read', 'ReadVariableOp', 'v'),
    ('y', 'MatMul', 'x', 'read'), ('loss', 'Mean', 'y'), ('aside', 'Sum', 'x'),
    ('initial', 'Const'), ('init', 'AssignVariableOp', 'v', 'initial'),
    ('path', 'Const'), ('save', 'SaveV2', 'path', 'read'),
    ('all', 'NoOp', '^save'))


def test_a_cycle_without_a_result_is_named():
  """All nodes were dropped, and the file was called empty."""
  graph_def = _graph(('a', 'Identity', 'b'), ('b', 'Identity', 'a'))
  source = source_graph.SourceGraph('g', graph_def, (),
                                    pruning.fetches(graph_def))
  with pytest.raises(errors.InvalidGraphError, match='a cycle and no result'):
    pruning.simplify(source, 'g.pb', prune=True)


def test_placeholders_are_fed():
  assert pruning.feeds(_STEP) == ('x',)


def test_sinks_are_what_nobody_reads_or_waits_for():
  assert pruning.sinks(_STEP) == ('loss', 'aside', 'init', 'all')


def test_a_step_neither_initializes_nor_saves():
  assert pruning.fetches(_STEP) == ('loss', 'aside')


def test_what_a_writer_marked_as_unneeded_is_not_fetched():
  graph = _graph(('x', 'Placeholder'), ('y', 'Sin', 'x'), ('loss', 'Mean', 'y'),
                 ('z', 'Cos', 'y'))
  for node in graph.node[2:]:
    node.attr[pruning.UNNEEDED_ATTRIBUTE].b = True
  assert pruning.fetches(graph) == ('y',)


def test_a_function_is_run_for_what_it_returns():
  graph = _graph(('a', '_Arg'), ('b', 'Sin', 'a'), ('c', 'Cos', 'a'),
                 ('r', '_Retval', 'b'))
  assert pruning.fetches(graph) == ('r',)


def test_an_update_by_what_is_fed_is_a_step_and_an_initial_value_is_none():
  graph = _graph(('x', 'Placeholder'), ('v', 'VarHandleOp'), ('c', 'Const'),
                 ('init', 'AssignVariableOp', 'v', 'c'),
                 ('step', 'AssignAddVariableOp', 'v', 'x'))
  assert pruning.fetches(graph) == ('step',)


def test_the_read_op_of_a_variable_is_no_step():
  graph = _graph(('v', 'VarHandleOp'), ('read', 'ReadVariableOp', 'v'),
                 ('c', 'Const'), ('y', 'Sin', 'c'))
  assert pruning.fetches(graph) == ('y',)


def test_graph_of_initializers_only_is_kept():
  graph = graph_defs.built(lambda: tf1.get_variable('v',
                                                    (2,), use_resource=False))
  assert pruning.fetches(graph)


def test_a_train_op_counts_more_than_signatures():
  meta_graph = meta_graph_pb2.MetaGraphDef()
  assert pruning.declared_fetches(meta_graph) == ()
  for key, name in (('b', 'y:0'), ('a', 'z:1'), ('c', 'y:1')):
    meta_graph.signature_def[key].outputs['o'].name = name
  assert pruning.declared_fetches(meta_graph) == ('z', 'y')
  meta_graph.collection_def['train_op'].node_list.value.append('train:0')
  assert pruning.declared_fetches(meta_graph) == ('train',)


def test_what_is_needed_stays_in_its_order_with_its_library():
  graph = _graph(('late', 'NoOp', '^a'), ('a', 'Const'), ('b', 'Const'),
                 ('c', 'Sin', 'b'))
  graph.library.function.add().signature.name = 'f'
  found = pruning.needed(graph, ('late',))
  assert [node.name for node in found.node] == ['late', 'a']
  assert found.library == graph.library
  assert len(graph.node) == 4  # The graph itself is left alone.


def test_a_cycle_of_a_loop_is_followed_once():
  graph = _graph(('e', 'Enter'), ('m', 'Merge', 'e', 'n'),
                 ('n', 'NextIteration', 'm'))
  assert len(pruning.needed(graph, ('n',)).node) == 3


@pytest.mark.parametrize('prune, left', [(True, ['x', 'y']),
                                         (False, ['x', 'y', 'aside'])])
def test_feeds_that_nothing_needs_are_dropped(prune, left):
  graph = _graph(('x', 'Placeholder'), ('y', 'Sin', 'x'),
                 ('aside', 'Placeholder'))
  source = graph_defs.source(graph, feeds=('x', 'aside'), fetches=('y',),
                             tables=(('words', 2),))
  found = pruning.simplify(source, 'f', prune)
  assert [node.name for node in found.graph_def.node] == left
  assert found.feeds == (('x',) if prune else ('x', 'aside'))
  assert found.tables == source.tables


def test_sinks_far_from_their_inputs_are_told_apart_in_one_go():
  """20,000 sinks that each need up to as many ops took hours."""
  chain = [('n0', 'Placeholder'),
           *((f'n{i}', 'Sin', f'n{i - 1}') for i in range(1, 20_000))]
  sinks = [(f's{i}', 'Cos', f'n{i}') for i in range(20_000)]
  assert len(pruning.fetches(_graph(*chain, *sinks))) == 20_000
