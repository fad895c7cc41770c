import pytest
import tensorflow as tf

from gdp_grappler.cluster import resolve
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.tables import finding
from gdp_grappler.placers import step as step_lib


@pytest.fixture(name='step', scope='module')
def _step():
  with tf.Graph().as_default() as graph:
    with tf.compat.v1.variable_scope('words', use_resource=True):
      words = tf.compat.v1.get_variable('table', (50, 4))
    with tf.compat.v1.variable_scope('head', use_resource=True):
      kernel = tf.compat.v1.get_variable('kernel', (4, 30))
      bias = tf.compat.v1.get_variable('bias', (30,))
    loss = tf.reduce_sum(tf.matmul(tf.gather(words, [1, 2]), kernel) + bias)
    tf.compat.v1.train.AdamOptimizer().minimize(loss, name='train')
  return step_lib.of_source(
      source_graph.SourceGraph('g', graph.as_graph_def(), fetches=('train',)),
      resolve.resolve('2xP100'))


def test_tables_come_with_their_slots(step):
  found = {t.label: t for t in finding.tables(step.source, step.graph)}
  assert set(found) == {'words/table', 'head/kernel'}
  words, head = found['words/table'], found['head/kernel']
  assert set(
      words.nodes) == {'words/table', 'words/table/Adam', 'words/table/Adam_1'}
  assert (words.axis, head.axis, head.layer) == (0, 1, 'head')
  assert words.bytes == 50 * 4 * 4
  assert words.needs_bytes in (3 * words.bytes, 4 * words.bytes)


@pytest.mark.parametrize('pattern, fits', [('words', True), ('w*', True),
                                           ('words/table', True),
                                           ('table', False), ('head', False)])
def test_a_table_is_meant_by_its_layer_or_in_full(pattern, fits, step):
  table = next(
      t for t in finding.tables(step.source, step.graph) if t.layer == 'words')
  assert finding.matches(pattern, table) == fits


def test_tables_that_were_split_are_written_down(step):
  found = finding.tables(step.source, step.graph)
  source = finding.in_parts(step.source, found, lambda table: 2)
  assert set(source.tables) == {('words/table', 2), ('head/kernel', 2)}
  names = {node.name for node in source.graph_def.node}
  assert 'words/table/Adam/part_1' in names and 'words/table' not in names


@pytest.mark.parametrize('slot, is_slot', [
    ('words/table/Adam_1', True),
    ('words/table/Adam/ExponentialMovingAverage', True),
    ('Adam/m/words/table', True),
    ('net/words/table/Adam', True),
    ('adam/words_table_momentum', True),
    ('adam/words_table_momentum_1', True),
    ('keywords/table', False),
    ('key_words/table', False),
    ('adam/keywords_table_momentum', False),
    ('words/tables', False),
    ('words/table2', False),
])
def test_a_slot_has_the_whole_name_of_its_variable(slot, is_slot):
  names = {1: slot, 2: 'words/table', 3: 'words/table/Adam'}
  found = finding.slots_of(names, dict.fromkeys(names, (5, 4)))
  assert found == ({1: 2, 3: 2} if is_slot else {3: 2})


@pytest.mark.parametrize('names', [('Variable', 'Variable_1'),
                                   ('net/W', 'net/W_2')])
def test_a_number_makes_no_slot(names):
  """A variable counted as a slot of each variable that begins its name."""
  labels = dict(enumerate(names))
  assert not finding.slots_of(labels, dict.fromkeys(labels, (5, 4)))
