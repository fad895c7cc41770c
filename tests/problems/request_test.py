"""Tests of what is known of a graph without TensorFlow."""

import pytest

from gdp_grappler import errors
from gdp_grappler.problems import help_texts
from gdp_grappler.problems import request as request_lib


def test_a_graph_of_costs_is_known_and_parsed_once(tmp_path):
  path = tmp_path / 'graph.json'
  path.write_text('{"nodes": [{"name": "a", "seconds": 2}]}')
  request = request_lib.Request(str(path))
  graph, costs = request.given
  assert graph.names == ('a',) and costs.costs.seconds[''].tolist() == [2.]
  assert request.given[0] is graph


@pytest.mark.parametrize('text', ['module:function', 'rnnlm-2'])
def test_others_need_tensorflow(text):
  assert request_lib.Request(text).given is None


def test_a_missing_file_needs_no_tensorflow():
  with pytest.raises(errors.InvalidGraphError, match='none.pb does not exist'):
    _ = request_lib.Request('none.pb').given


def test_a_profile_is_of_no_use_where_steps_are_measured():
  request_lib.refuse_profile('')
  with pytest.raises(
      errors.GdpError, match="profile='p.json' prices simulated"
      ' steps.*Leave out profile'):
    request_lib.refuse_profile('p.json')


def test_help_texts_become_sentences():
  assert help_texts.sentence('a graph') == 'A graph.'


@pytest.mark.parametrize('given, typed', [
    (request_lib.Request('a graph.pb'), "'a graph.pb'"),
    (request_lib.Request('g.pb', 8, 3., 'p.json'),
     'g.pb --batch_size=8 --trip_count=3.0 --profile=p.json'),
    (request_lib.Request('g.pb', may_round=True), 'g.pb --may_round'),
])
def test_what_to_type_for_the_same(given, typed):
  assert given.typed() == typed


def test_signature_and_shapes_are_typed_again():
  typed = request_lib.Request('model', signature='serve', pins='ignore',
                              shapes=(('x', (32, 8)),)).typed()
  assert typed == 'model --pins=ignore --signature=serve --shape=x=32,8'
