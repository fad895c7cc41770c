import pytest

from gdp_grappler.plugin import strategies
from helpers import graph_defs

_CPUS = tuple(map(graph_defs.CPU, range(3)))


def _source(node, devices=_CPUS):
  return graph_defs.source(graph_defs.graph_def(node), devices=devices)


@pytest.mark.parametrize('name, op', [('replica_1/add', 'NoOp'),
                                      ('model/replica_2/add', 'NoOp'),
                                      ('reduce', 'CollectiveReduceV2'),
                                      ('sum', 'NcclAllReduce')])
def test_replicas_are_left_alone(name, op):
  reason = strategies.why_not(_source(graph_defs.node(name, op)))
  assert 'replicas' in reason and name in reason


def test_steps_of_parameter_servers_are_left_alone():
  server = '/job:ps/replica:0/task:0/device:CPU:0'
  node = graph_defs.node('a', 'NoOp', device=_CPUS[0])
  reason = strategies.why_not(_source(node, (*_CPUS, server)))
  assert 'parameter servers' in reason and server in reason


@pytest.mark.parametrize('name', ['a', 'replica_a/b', 'my_replica_1/add'])
def test_other_graphs_may_be_placed(name):
  assert not strategies.why_not(_source(graph_defs.node(name, 'NoOp')))
