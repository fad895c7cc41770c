"""Tables that no device can hold are split before a step is placed."""

import dataclasses
import sys

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.api import placing
from gdp_grappler.cluster import resolve
from gdp_grappler.graph import source_graph
from gdp_grappler.graph import variable_names
from gdp_grappler.placers import step as step_lib
from gdp_grappler.problems import reading
from gdp_grappler.problems import request as request_lib
from gdp_grappler.problems import tables
from helpers import profiles

_ROWS = 5000
_TABLE_BYTES = _ROWS * 8 * 4
_MODEL = '''
import keras

def words(constraint=None):
  model = keras.Sequential([
      keras.Input((4,), dtype='int32'),
      keras.layers.Embedding(5000, 8, name='words',
                             embeddings_constraint=constraint),
      keras.layers.Flatten(), keras.layers.Dense(3, name='head')])
  model.compile('adam', 'mse')
  return model

def bounded():
  return words('max_norm')
'''


@pytest.fixture(name='step', scope='module')
def _step():
  with tf.Graph().as_default() as graph:
    with tf.compat.v1.variable_scope('words', use_resource=True):
      words = tf.compat.v1.get_variable('table', (_ROWS, 8))
    loss = tf.reduce_sum(tf.gather(words, [1, 2]))
    tf.compat.v1.train.AdagradOptimizer(.1).minimize(loss, name='train')
    tf.group(tf.compat.v1.global_variables_initializer(), name='init')
  return step_lib.of_source(
      source_graph.SourceGraph('g', graph.as_graph_def(), fetches=('train',)),
      _cluster(10**9))


def _cluster(size):
  cluster = resolve.resolve('2xP100')
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(d, memory_bytes=size, memory_margin=0.)
          for d in cluster.devices))


def _in(step, size):
  return dataclasses.replace(step, cluster=_cluster(size))


def test_what_fits_stays_whole(step):
  assert tables.split(step, 'auto', None, pytest.fail) is None
  assert tables.split(_in(step, 10), 'off', None, pytest.fail) is None


def test_what_fits_no_card_is_split_with_a_line(step):
  lines = []
  found = tables.split(_in(step, int(1.5 * _TABLE_BYTES)), 'auto', None,
                       lines.append)
  assert found.tables == (('words/table', 4),)
  assert len(lines) == 1 and '"words/table"' in lines[0]
  assert 'is in 4 parts: the largest device has room for' in lines[0]


@pytest.mark.parametrize('pattern', ['words', 'w*', '*', 'words/table'])
def test_a_table_that_a_map_places_stays_whole_with_a_line(step, pattern):
  lines = []
  found = tables.split(_in(step, int(1.5 * _TABLE_BYTES)), 'auto', None,
                       lines.append, ((pattern, 'CPU:0'),))
  assert found is None and len(lines) == 1
  assert '"words/table"' in lines[0] and 'stays whole' in lines[0]
  assert 'CPU:0' in lines[0] and '4 parts' in lines[0]


@pytest.mark.parametrize('pattern, chosen', [('head', 'auto'),
                                             ('words/table_part_0', 'auto'),
                                             ('words', (('words', 4),))],
                         ids=['another layer', 'a part', 'parts as asked for'])
def test_a_table_that_a_map_leaves_alone_is_split(step, pattern, chosen):
  found = tables.split(_in(step, int(1.5 * _TABLE_BYTES)), chosen, None,
                       lambda _: None, ((pattern, 'CPU:0'),))
  assert found.tables == (('words/table', 4),)


def test_the_whole_graph_is_split_like_its_step(step):
  split = dataclasses.replace(
      step, source=tables.split(step, (('words', 3),), None, lambda _: None))
  found = tables.like(step.source, split)
  assert found.tables == (('words/table', 3),)
  assert tables.like(step.source, step) is step.source


def test_a_name_that_means_nothing_is_told_with_those_that_do(step):
  with pytest.raises(errors.GdpError, match='did you mean|Did you mean'):
    tables.split(step, (('word', 2),), None, pytest.fail)


def test_a_graph_def_comes_out_in_parts_and_trains_alike(step, tmp_path):
  given, placed = tmp_path / 'step.pb', tmp_path / 'placed.pb'
  given.write_bytes(step.source.graph_def.SerializeToString())
  plan = placing.place(str(given), _cluster(10**9), placer='m_etf',
                       split_tables={'words': 2}, whole_graph=True)
  plan.save(str(placed))
  assert {f'words/table/part_{i}' for i in range(2)} <= set(plan.graph.names)
  values = [
      _trained(path, names)
      for path, names in ((given, ['words/table']),
                          (placed,
                           ['words/table/part_0', 'words/table/part_1']))
  ]
  np.testing.assert_array_equal(*values)


def _trained(path, names):
  graph_def = tf.compat.v1.GraphDef.FromString(path.read_bytes())
  for node in graph_def.node:
    node.device = ''
    if node.op == 'RandomUniform':  # The same for both.
      node.attr['seed'].i, node.attr['seed2'].i = 1, 2
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name='')
    reads = [
        tf.raw_ops.ReadVariableOp(
            resource=graph.get_tensor_by_name(f'{name}:0'), dtype=tf.float32)
        for name in names
    ]
    with tf.compat.v1.Session(graph=graph) as session:
      session.run('init')
      for _ in range(3):
        session.run('train')
      return np.concatenate(session.run(reads))


@pytest.fixture(name='module')
def _module(tmp_path, monkeypatch):
  (tmp_path / 'split_model.py').write_text(_MODEL)
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(str(tmp_path))
  yield 'split_model'
  sys.modules.pop('split_model', None)


def _read(graph, size, **how):
  lines = []
  step = reading.read(request_lib.Request(graph, **how),
                      lambda _: _cluster(size), lines.append)
  names = {variable_names.of(node) for node in step.source.graph_def.node}
  return step, lines, names


def test_a_model_is_traced_with_parts(module):
  step, lines, names = _read(f'{module}:words', 2 * _TABLE_BYTES)
  assert step.source.tables == (('words', 4),)
  assert 'is in 4 parts' in lines[-1]
  assert any(name.endswith('words/embeddings_part_3') for name in names)
  assert any('embeddings_part_3_velocity' in name for name in names)


def test_a_model_that_cannot_be_split_is_as_it_was_and_told(module):
  step, lines, _ = _read(f'{module}:bounded', 2 * _TABLE_BYTES)
  assert not step.source.tables
  assert any(
      'No table was split' in line and 'MaxNorm' in line for line in lines)


def test_a_profile_is_told_of_the_graph_in_parts(step, tmp_path):
  """It was told of the graph before its tables were split."""
  given, profile = tmp_path / 'step.pb', tmp_path / 'profile.json'
  given.write_bytes(step.source.graph_def.SerializeToString())
  whole = _read(str(given), 10**9)[0].graph
  profiles.of_graph(whole, np.ones(whole.num_ops)).save(profile)
  split, lines, _ = _read(str(given), int(1.5 * _TABLE_BYTES),
                          profile=str(profile))
  assert split.source.tables
  told, = (line for line in lines if line.startswith('Profile '))
  assert str(split.cost_model.coverage(split.graph)) in told
  assert f'{whole.num_ops} ops measured' not in told
