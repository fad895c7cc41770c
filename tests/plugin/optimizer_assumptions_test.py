"""Keys of the option about clocks, and about loops of unknown length."""

import dataclasses
import pathlib

import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler.graph import source_graph
from gdp_grappler.placers import registry
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import settings as settings_lib
from helpers import graph_defs

_DENSE = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'
_CPUS = tuple(map(graph_defs.CPU, range(3)))


def _dense():
  meta_graph = meta_graph_pb2.MetaGraphDef.FromString(_DENSE.read_bytes())
  return dataclasses.replace(source_graph.from_meta_graph(meta_graph),
                             devices=_CPUS)


def test_what_is_repeatable_is_ended_by_no_clock(monkeypatch):
  problems = []
  for repeatable in (True, False):
    monkeypatch.setattr(
        optimizer, '_proposals', lambda problem, settings:
        (problems.append(problem) or
         (registry.create('random').place(problem),), ''))
    optimizer.optimize(
        _dense(),
        settings_lib.Settings(repeatable=repeatable, time_budget_s=6.,
                              keep_best=False, order='fifo'))
  counted, timed = problems
  assert counted.by_count and counted.time_budget_s == 2.
  assert not timed.by_count and timed.time_budget_s <= 2.


def test_loops_of_unknown_length_are_told_and_the_option_says_their_turns():

  def make():
    limit = tf.compat.v1.placeholder(tf.int32, [])
    tf.compat.v1.while_loop(lambda i, _: i < limit, lambda i, x: (i + 1, x @ x),
                            [0, tf.ones([64, 64])])

  tf.compat.v1.disable_control_flow_v2()
  try:
    graph_def = graph_defs.built(make)
  finally:
    tf.compat.v1.enable_control_flow_v2()
  source = source_graph.SourceGraph('loop', graph_def, devices=_CPUS)
  for turns, said in ((None, 'counted as 32 iterations'),
                      (5, 'counted as 5 iterations')):
    settings = settings_lib.Settings(placer='random', keep_best=False,
                                     trip_count=turns)
    message = optimizer.optimize(source, settings).message
    assert said in message and 'trip_count sets the number' in message
