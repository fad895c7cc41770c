"""Protobuf text is read, or refused by one kind of error."""

from __future__ import annotations

import warnings

import pytest
from tensorflow.core.framework import graph_pb2

from gdp_grappler import text_protos


def test_text_becomes_a_message():
  graph = text_protos.parse('node { name: "a\\n" }', graph_pb2.GraphDef())
  assert graph.node[0].name == 'a\n'


def test_unknown_fields_are_passed_over_where_that_is_asked_for():
  text = 'node { name: "a" } nobody: 3'
  assert text_protos.parse(text, graph_pb2.GraphDef(), True).node
  with pytest.raises(ValueError, match='nobody'):
    text_protos.parse(text, graph_pb2.GraphDef())


@pytest.mark.parametrize('text', [
    'node {', 'node { name: "\\9" }', 'node { name: "\\' + '777" }',
    'library { function { signature { attr { default_value { list { func {'
    ' attr { value { func ' * 500
])
def test_whatever_is_wrong_is_a_value_error(text):
  """Regression: an escape that Python does not know was its warning."""
  with warnings.catch_warnings(record=True) as heard:
    with pytest.raises(ValueError):
      text_protos.parse(text, graph_pb2.GraphDef())
  assert not heard
