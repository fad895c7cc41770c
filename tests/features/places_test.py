from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.features import places
from gdp_grappler.features import schema
from gdp_grappler.graph.structure import coordinates
from gdp_grappler.workloads.synthetic import synthetic
from helpers import graphs


def test_the_middle_of_what_is_at_a_place():
  values = np.array([5., 0., 0., -1., 9.])
  found = places.shares(values, np.array([2., 1., 3., 100., 4.]))
  # 0 has 4 of 10, 5 the next 2, 9 the last 4.
  assert found.tolist() == [.5, .2, .2, -1., .8]


def test_nowhere_and_nothing_to_do():
  assert places.shares(np.full(3, -1.), np.ones(3)).tolist() == [-1.] * 3
  assert places.shares(np.array([0., 1.]), np.zeros(2)).tolist() == [.25, .75]


@given(
    st.lists(st.tuples(st.integers(-1, 5), st.floats(0, 1e6)), min_size=1,
             max_size=30))
def test_shares_rise_with_values(pairs):
  values, work = (np.array(column, float) for column in zip(*pairs))
  found = places.shares(values, work)
  assert ((found == -1) == (values < 0)).all()
  known = found[values >= 0]
  assert ((0 <= known) & (known <= 1)).all()
  order = np.argsort(values[values >= 0], kind='stable')
  assert (np.diff(known[order]) >= -1e-12).all()


@pytest.mark.parametrize('name', ['layer', 'segment', 'variable'])
def test_places_go_by_coordinates(name):
  drawn = synthetic.draw(
      np.random.default_rng(1),
      synthetic.Config(ops=(400, 400), families=('seq2seq',)))
  graph = drawn.graph
  count = graph.num_groups
  columns = places.columns(graph, graph.first_ops, np.ones(count),
                           np.arange(float(count)))
  assert set(columns) == set(schema.PLACE_FEATURES)
  values, found = coordinates.of(graph)[name], columns[f'{name}_place']
  assert values.max() > 0
  assert ((values < 0) == (found < 0)).all()
  assert (np.unique(values, return_inverse=True)[1] == np.unique(
      found, return_inverse=True)[1]).all()


def test_order_and_depth_share_the_work_out():
  graph = graphs.chain(4)
  columns = places.columns(graph, np.arange(4), np.ones(4),
                           np.array([1., 2., 2., 1.]))
  assert columns['order_place'].tolist() == [.125, .375, .625, .875]
  assert columns['depth_place'].tolist() == [.25, .75, .75, .25]
