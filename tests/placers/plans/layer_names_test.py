"""Tests of `layer_names`: the layers in whose scopes ops are."""

import pytest

from gdp_grappler.placers.plans import layer_names


def _names(reads, labels):
  """Names of layers by scope.

  Args:
    reads: Pairs of a scope and the number of the variable it reads; -1 if none.
    labels: Names of the variables; '' for an unknown one.
  """
  paths = [tuple(scope.split('/')) for scope, _ in reads]
  names = layer_names.of(paths, [holder for _, holder in reads], labels)
  return ['/'.join(layer_names.named(path, names)) for path in paths]


@pytest.mark.parametrize(
    'reads, labels, found',
    [
        # Keras 3, where the second model is called first.
        ([('net_1/net_1_1', 1), ('net_1/net_2', 0),
          ('net_1/net_1_3', 1)], ['net/net/kernel', 'net/net_1/kernel'
                                 ], ['net/net_1', 'net/net', 'net/net_1']),
        # Keras 3 with models whose variables lack the names of the models.
        ([('m_1_1/a_1', 0), ('m_2/b_1', 1), ('m_1_3/a_1', 0)
         ], ['a/kernel', 'b/kernel'], ['m_1/a', 'm/b', 'm_1/a']),
        # tf_keras, which numbers only repeated calls.
        ([('m/a', 0), ('m_1/a', 0),
          ('m_1_1/b', 1)], ['a/kernel', 'b/kernel'], ['m/a', 'm/a', 'm_1/b']),
        ([('m/a', 0), ('m_1/b', 1),
          ('m_1_1/b', 1)], ['a/kernel', 'b/kernel'], ['m/a', 'm_1/b', 'm_1/b']),
        ([('a', 0), ('a_1', 0),
          ('a_1_1', 1)], ['a/kernel', 'a_1/kernel'], ['a', 'a', 'a_1']),
        # A model with the variables of another and one of its own.
        ([('m/a', 0), ('m_1/a', 0),
          ('m_1/b', 1)], ['a/kernel', 'b/kernel'], ['m/a', 'm_1/a', 'm_1/b']),
        # Names of variables are unknown.
        ([('a_1', 0), ('a_1_2', 1)], ['', ''], ['a', 'a_1']),
        ([('a', 0), ('a_1', 1)], ['', ''], ['a', 'a_1']),
        # Layers of one name that have nothing else in common.
        ([('a_1', 0), ('a_3', 1)], ['', ''], ['a_1', 'a_3']),
        # Layers without variables.
        ([('a_1', 0), ('add_1', -1), ('scope_1', -1),
          ('scope_2', -1)], ['a/kernel'], ['a', 'add', 'scope_1', 'scope_2']),
        ([('add_1', -1)], [], ['add_1']),
    ])
def test_a_scope_has_the_name_of_its_layer(reads, labels, found):
  assert _names(reads, labels) == found


def test_a_name_that_was_made_up_tells_nothing():
  guess = 'a_1/variable'
  assert _names([('a_1', 0), ('b_1', 1)], [guess, 'b/kernel']) == ['a', 'b']


def test_a_name_that_variables_tell_is_known_even_if_it_is_the_scope():
  """In tf_keras a map for `stage_1` placed `stage_1_1`, and not `stage_1`."""
  paths = [('m', 'stage_1'), ('m', 'stage_1_1')]
  assert layer_names.of(paths, [0, 1],
                        ['stage_1/kernel', 'stage_1_1/kernel']) == {
                            paths[0]: 'stage_1', paths[1]: 'stage_1_1'
                        }
