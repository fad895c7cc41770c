"""Names of variables that the host gives to tables in parts."""

import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from gdp_grappler.graph import variable_names
from gdp_grappler.graph.sources import captures
from gdp_grappler.plugin import host
from gdp_grappler.plugin import library
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import placer_thread
from gdp_grappler.plugin import settings as settings_lib
from helpers import graph_defs


@pytest.mark.parametrize('layer,name', [
    ('words/kernel_part_1', 'words/kernel_part_1'),
    ('words', ''),
])
def test_variables_have_names_if_a_map_names_a_part(layer, name):
  """Once a map of layers could move a part of a table only in `fit`."""
  variable = tf.Variable([5.], name='words/kernel_part_1')
  traced = tf.function(lambda x: x * variable)
  traced(tf.constant(1.))
  graph_id, = captures.concrete_functions(traced)
  graph = graph_pb2.GraphDef()
  for number in range(2):
    node = graph.node.add(name=f'arg_{number}', op='_Arg')
    node.attr['index'].i = number
  node.attr['T'].type = tf.resource.as_datatype_enum
  asked = []

  def optimize(source, settings):
    asked.append(source)
    return outcome_lib.leave_alone(source, settings)

  settings = settings_lib.Settings(plan=((layer, 'CPU:1'),))
  query = library.Query(graph_id=graph_id, fingerprint='ab12', feeds=(),
                        settings=settings.to_json(), fetches=('arg_0',),
                        devices=(graph_defs.CPU(0), graph_defs.CPU(1)),
                        graph=graph.SerializeToString(), may_place=True)
  host.Host(optimize, placer_thread.PlacerThread()).answer(query)
  source, = asked
  assert [variable_names.of(n) for n in source.graph_def.node] == ['', name]
