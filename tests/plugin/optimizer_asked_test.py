"""Requests of users: a placer in any case, and devices by `tf.device`."""

import dataclasses
import pathlib

import pytest
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import asked
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import settings as settings_lib
from helpers import graph_defs

_TESTDATA = pathlib.Path(__file__).parents[1] / 'testdata'
_CPUS = tuple(map(graph_defs.CPU, range(3)))
_RANDOM = settings_lib.Settings(placer='random', keep_best=False)


@pytest.fixture(name='source')
def _dense():
  meta_graph = meta_graph_pb2.MetaGraphDef.FromString(
      (_TESTDATA / 'dense_train_step.pb').read_bytes())
  return dataclasses.replace(source_graph.from_meta_graph(meta_graph),
                             devices=_CPUS)


def _source(*nodes):
  return graph_defs.source(graph_defs.graph_def(*nodes), devices=_CPUS)


@pytest.mark.parametrize('placer', ['m_etf', 'metis'])
def test_forced_placer_that_spreads_nothing_says_why(source, placer):
  outcome = optimizer.optimize(
      source, settings_lib.Settings(placer=placer, keep_best=False))
  assert 'all ops that may move are on CPU:0' in outcome.message
  assert f'no other placement by {placer} is' in outcome.message
  assert 'devices of one CPU share its cores' in outcome.message


@pytest.mark.parametrize('option',
                         [{'placer': 'round_robin'},
                          {'placer': 'single_device'}, {'placer': 'cpu_only'}])
def test_forced_placer_that_does_as_its_name_says_explains_nothing(
    source, option):
  outcome = optimizer.optimize(source,
                               settings_lib.Settings(keep_best=False, **option))
  assert 'all ops that may move' not in outcome.message


def test_one_op_that_round_robin_moves_is_not_explained_by_round_robin():
  """Once the line advised the placer that the option had already."""
  source = _source(*graph_defs.branches(graph_defs.CPU(0)))
  asked.mark(source.graph_def, lambda node: ''
             if node.name == 'b0' else graph_defs.CPU(0))
  outcome = optimizer.optimize(
      source, settings_lib.Settings(keep_best=False, placer='round_robin'))
  assert 'placed by round_robin' in outcome.message
  assert 'in any case' not in outcome.message


def test_what_was_asked_for_stays_and_is_told():
  source = _source(*graph_defs.branches(graph_defs.CPU(1)))
  asked.mark(source.graph_def, lambda node: graph_defs.CPU(1)
             if node.name == 'b0' else '')
  for seed in range(5):
    outcome = optimizer.optimize(source,
                                 dataclasses.replace(_RANDOM, seed=seed))
    on = dict(zip([n.name for n in source.graph_def.node], outcome.devices))
    assert on['b0'] == graph_defs.CPU(1)
    assert "1 op stays where tf.device put it ('pins')" in outcome.message


def test_the_graph_that_makes_variables_counts_no_requests():
  """Once a line named tf.device in a program without tf.device."""
  source = _source(*graph_defs.branches(graph_defs.CPU(1)))
  asked.mark(source.graph_def, lambda node: graph_defs.CPU(1)
             if node.name == 'b0' else '')
  source = dataclasses.replace(source, name='initialize_variables')
  outcome = optimizer.optimize(source, _RANDOM)
  on = dict(zip([n.name for n in source.graph_def.node], outcome.devices))
  assert on['b0'] == graph_defs.CPU(1)
  assert 'placed by random' in outcome.message
  assert 'pins' not in outcome.message


def test_graph_of_which_all_was_asked_for_is_told():
  source = _source(graph_defs.node('a', 'NoOp', device=graph_defs.CPU(1)))
  asked.mark(source.graph_def, lambda node: node.device)
  outcome = optimizer.optimize(source, settings_lib.Settings())
  assert outcome.devices is None
  assert 'left as it was: no op may move; 1 op stays' in outcome.message


@pytest.mark.parametrize('placer', ['random', 'm_etf', 'gdp'])
def test_devices_of_one_cpu_are_never_predicted_to_pay(monkeypatch, source,
                                                       placer):
  """No search runs there, because gains of a percent are chance."""
  monkeypatch.setattr(optimizer, '_proposals', None)
  outcome = optimizer.optimize(source, settings_lib.Settings(placer=placer))
  assert outcome.devices is None
  assert f'{placer} gives no gain' in outcome.message
  before, after = outcome.before_s, outcome.after_s
  assert before == after


def test_what_is_spread_over_devices_of_one_cpu_may_come_together():
  nodes = [*graph_defs.branches(graph_defs.CPU(0))]
  nodes[-1].device = graph_defs.CPU(1)
  outcome = optimizer.optimize(_source(*nodes), settings_lib.Settings())
  assert outcome.devices is not None and len(set(outcome.devices)) == 1
