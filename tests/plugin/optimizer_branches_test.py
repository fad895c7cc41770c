"""Graphs with branches that depend on whether a v1 variable is set."""

import pytest
import tensorflow as tf

from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import settings as settings_lib
from helpers import graph_defs

_CPUS = tuple(map(graph_defs.CPU, range(3)))
_RANDOM = settings_lib.Settings(placer='random', keep_best=False)


@pytest.fixture(name='branches', params=['Switch', 'If'])
def _branches(request):
  """End of the type of the ops that make branches."""
  if request.param == 'If':
    yield request.param
    return
  tf.compat.v1.disable_control_flow_v2()
  yield request.param
  tf.compat.v1.enable_control_flow_v2()


def _optimized(branches, *fetches):
  """Places a graph that reads a variable in a branch, and fetches more ops."""
  with tf.Graph().as_default() as graph, tf.device(graph_defs.CPU(0)):
    steps, weights = (tf.compat.v1.get_variable(name, [2], use_resource=False)
                      for name in ('steps', 'weights'))
    first = tf.tanh(tf.fill([2], 1.))
    is_set = tf.compat.v1.is_variable_initialized(steps)
    read = tf.cond(is_set, steps.read_value, lambda: first)
    tf.compat.v1.assign_add(steps, first, name='count')
    tf.compat.v1.assign(weights, first, name='set_weights')
    if branches == 'Switch':
      tf.cond(is_set, lambda: first,
              lambda: tf.compat.v1.assign(steps, first, name='set'))
  known = tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(),
                                                    [read.op.name, *fetches])
  assert any(node.op.endswith(branches) for node in known.node)
  return optimizer.optimize(graph_defs.source(known, devices=_CPUS), _RANDOM)


@pytest.mark.parametrize('branches, sets', [('Switch', 'steps/Assign'),
                                            ('If', 'steps/Assign'),
                                            ('Switch', 'cond_1/set')],
                         indirect=['branches'])
def test_a_graph_that_sets_the_variable_of_a_branch_stays(branches, sets):
  """Once the read came before the first value, and the run failed."""
  outcome = _optimized(branches, sets)
  assert outcome.devices is None
  assert 'may set a variable that IsVariableInitialized tests' in (
      outcome.message)


def test_a_graph_that_sets_other_variables_is_placed(branches):
  """Once graphs stayed in which a branch reads only the step counter."""
  devices = _optimized(branches, 'count', 'set_weights').devices
  assert len(set(devices)) > 1
