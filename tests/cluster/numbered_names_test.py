import pytest

from gdp_grappler.cluster import numbered_names
from helpers import graphs

_NAMES = ['s/dense/x', 's/dense_1/x', 's/dense_1/y']


@pytest.mark.parametrize(
    'names, ranked',
    [
        (['m_1/dense_10/x', 'm_1/dense_9/x'], [
            'm, 0 of 1/dense, 1 of 2/x, 0 of 1',
            'm, 0 of 1/dense, 0 of 2/x, 0 of 1'
        ]),
        (['a_1', 'a', 'a_x', '_7'
         ], ['a, 1 of 2', 'a, 0 of 2', 'a_x, 0 of 1', '_7, 0 of 1']),
        # Inputs of a step in tf_keras.
        (['m_dense_10_read_resource', 'm_dense_9_read_resource', 'm_2b_x'], [
            'm_dense_read_resource, 1 of 2', 'm_dense_read_resource, 0 of 2',
            'm_2b_x, 0 of 1'
        ]),
        (['m_1_2/x', 'm_1_1/x'], ['m, 1 of 2/x, 0 of 1', 'm, 0 of 2/x, 0 of 1'
                                 ]),
    ])
def test_ranks_take_the_place_of_numbers(names, ranked):
  assert numbered_names.ranked(names) == ranked


def test_names_of_the_model_that_was_made_before():
  before = graphs.chain(3, names=_NAMES)
  again = before.replace(
      names=['s_1/dense_2/x', 's_1/dense_3/x', 's_1/dense_3/y'])
  names = reversed(_NAMES)
  assert numbered_names.names_before(again, [*names],
                                     before.fingerprint) == _NAMES


def test_the_graph_itself_keeps_its_names():
  graph = graphs.chain(3, names=_NAMES)
  assert numbered_names.names_before(graph, ['edited'],
                                     graph.fingerprint) is graph.names


@pytest.mark.parametrize('names, tensor_bytes', [
    (['s_1/dense_2/x', 's_1/dense_3/x', 's_1/other_3/y'], 100),
    (['s_1/dense_2/x', 's_1/dense_3/x', 's_1/dense_4/y'], 100),
    (['s_1/dense/x', 's_1/dense_1/x', 's_1/dense_1/y'], 77),
])
def test_other_names_or_sizes_are_of_another_model(names, tensor_bytes):
  before = graphs.chain(3, names=_NAMES)
  again = graphs.chain(3, tensor_bytes, names=names)
  assert numbered_names.names_before(again, _NAMES, before.fingerprint) is None
