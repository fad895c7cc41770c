"""Tests of `diff`."""

import json

import numpy as np
import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.api import placed_step
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import step as step_lib
from helpers import clusters
from helpers import graphs


def _placed(graph, devices):
  cluster = clusters.make_cluster(2)
  step = step_lib.Step(graph, cluster, None,
                       clusters.FixedCosts(np.arange(1., graph.num_ops + 1)))
  return placed_step.PlacedStep(
      None, step, placement_lib.Placement(np.array(devices), cluster), 'test')


def test_what_moved_and_what_it_costs():
  graph = graphs.chain(3, param_bytes=[0, 8, 0])
  difference = gdp_grappler.diff(_placed(graph, [1, 1, 1]),
                                 _placed(graph, [1, 2, 0]))
  assert [(op.name, op.source, op.target, op.after_s) for op in difference.moved
         ] == [('op2', 'GPU:0', 'CPU:0', 3.), ('op1', 'GPU:0', 'GPU:1', 2.)]
  assert difference.change_s == 4  # Two tensors of 2 s each.
  assert difference.before.cut_tensors == 0
  assert difference.after.cut_tensors == 2
  shifts = {shift.target: shift for shift in difference.shifts}
  # Moved alone, op1 receives and sends a tensor, and op2 only receives one.
  assert shifts['GPU:1'].step_time_s == 6 + 4
  assert shifts['CPU:0'].step_time_s == 6 + 2
  assert (shifts['GPU:1'].param_bytes, shifts['CPU:0'].param_bytes) == (8, 0)


def test_nothing_moved(capsys):
  graph = graphs.chain(2)
  difference = gdp_grappler.diff(_placed(graph, [1, 1]), _placed(graph, [1, 1]))
  assert difference.moved == difference.shifts == ()
  difference.show()
  assert '0 of 2 ops moved' in capsys.readouterr().out


def test_all_of_it_is_json_and_a_table():
  graph = graphs.chain(30)
  difference = gdp_grappler.diff(_placed(graph, [1] * 30),
                                 _placed(graph, [2] * 30))
  fields = json.loads(difference.to_json())
  assert len(fields['moved']) == 30 and fields['change_s'] == 0
  assert '... and 10 more ops' in str(difference)
  # Once a notebook did not say that it showed 20 of 30 ops.
  page = difference._repr_html_()
  assert '<table>' in page and '... and 10 more ops' in page
  assert repr(difference).startswith('<Difference 30 of 30 ops moved;')


def test_other_graphs_cannot_be_compared():
  with pytest.raises(errors.PlanError, match='Give two of one graph'):
    gdp_grappler.diff(_placed(graphs.chain(2), [1, 1]),
                      _placed(graphs.chain(3), [1, 1, 1]))


def test_graphs_that_differ_in_numbers_of_keras_can_be_compared():
  """The same model, made again in the same program, was another graph."""
  before, after = (graphs.make_graph([(0, 1, 8)], name='net', names=names)
                   for names in (['a', 'adam/Sub'], ['a', 'adam_1/Sub']))
  difference = gdp_grappler.diff(_placed(before, [1, 1]),
                                 _placed(after, [1, 2]))
  assert [op.name for op in difference.moved] == ['adam/Sub']
