"""Slots are joined with their variable, whatever updates it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.api import subjects
from gdp_grappler.graph.legality import slots
from helpers import graph_defs

tf1 = tf.compat.v1


@pytest.mark.parametrize('slot', [
    'adagrad/net_dense_kernel_accumulator', 'm/net/dense/kernel',
    'Adam/m/net/dense/kernel', 'net/dense/kernel/Adam_1'
])
def test_slots_are_called_after_their_variable(slot):
  assert slots.key('net/dense/kernel') in list(slots.variables_of(slot))


def test_slots_of_parts_are_called_after_parts():
  for slot in ('adagrad/words_table_accumulator_part_1',
               'adagrad/words_table_part_1_accumulator',
               'words/table/Adam/part_1'):
    found = list(slots.variables_of(slot))
    assert 'words_table_part_1' in found
    assert 'words_table_part_0' not in found


def test_a_number_makes_no_slot_of_a_layers_second_variable():
  assert 'dense_kernel' not in list(slots.variables_of('net/dense_kernel_1'))


def _model(optimizer):
  ids = [keras.Input((), dtype='int32', name=name) for name in ('a', 'b')]
  tables = [
      keras.layers.Embedding(50, 4, name=f'{i.name}_table')(i) for i in ids
  ]
  outputs = keras.layers.Dense(1,
                               name='top')(keras.layers.Concatenate()(tables))
  model = keras.Model(ids, outputs, name='two_tables')
  model.compile(optimizer, 'mse', jit_compile=False)
  return model


@pytest.mark.parametrize('optimizer', [
    'adagrad', 'ftrl', 'adafactor',
    lambda: keras.optimizers.RMSprop(momentum=.9, centered=True)
])
def test_slots_of_embeddings_follow(optimizer):
  """Once those of Adagrad and RMSprop stayed on the card that had no room."""
  made = optimizer() if callable(optimizer) else optimizer
  graph = subjects.read(_model(made), '2xP100', subjects.Reading()).step.graph
  groups = {
      graph.variables[op]: graph.groups[op]
      for op in np.flatnonzero(graph.param_bytes)
  }
  for name in ('a', 'b'):
    own = {
        group for variable, group in groups.items()
        if f'{name}_table' in variable
    }
    assert own == {groups[f'{name}_table/embeddings']}
  assert groups['a_table/embeddings'] != groups['b_table/embeddings']
  kept = [v for v in groups if '_table' in v]
  assert optimizer == 'adafactor' or len(kept) > 2


def _groups(make):
  return graph_defs.groups(graph_defs.read(make))


def _table(name, rows=4):
  return tf1.Variable(tf.ones([rows, 3]), use_resource=True, name=name)


def _sparse_adagrad(table, slot, ids, gradient):
  """Of which no arithmetic on whole tensors leads to the variable."""
  tf1.scatter_add(slot, ids, gradient**2)
  rows = tf.gather(slot.read_value(), ids)
  tf1.scatter_sub(table, ids, gradient / tf.sqrt(rows))


def test_the_optimizers_scope_tells_slots_without_names():

  def make():
    table, slot, other = _table('x'), _table('y'), _table('z')
    ids = tf1.placeholder(tf.int32, [2], 'ids')
    with tf1.name_scope('net'):
      out = tf.gather(table, ids) * tf.gather(other, ids)
    with tf1.name_scope('adagrad'):
      _sparse_adagrad(table, slot, ids, out)
      tf1.scatter_sub(other, ids, out)

  found = _groups(make)
  assert found['x'] == found['y'] != found['z']


def test_tables_that_only_change_each_other_are_no_slots():
  """As of a matrix factorization: each value ends in the other one alone."""

  def make():
    users, items = _table('emb/w'), _table('emb/w_1')
    ids = tf1.placeholder(tf.int32, [2], 'ids')
    with tf1.name_scope('net'):
      rows = tf.gather(users, ids), tf.gather(items, ids)
    with tf1.name_scope('sgd'):
      tf1.scatter_sub(users, ids, rows[1])
      tf1.scatter_sub(items, ids, rows[0])

  found = _groups(make)
  assert found['emb/w'] != found['emb/w_1']
