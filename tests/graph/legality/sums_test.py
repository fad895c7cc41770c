import pytest

from gdp_grappler.graph import graph_def_io
from helpers import graph_defs

_HOSTS = [f'/job:worker/replica:0/task:{i}/device:CPU:0' for i in range(2)]
_ONE_HOST = [graph_defs.CPU(0), graph_defs.CPU(1)]


def _with_sum(devices, inputs=3, reader=0, **attributes):
  """The ops that share a group with a sum of `inputs` ops."""
  here = devices[0]
  size = {'i': inputs}
  nodes = [
      graph_defs.node('x', '_Arg', device=here, T=graph_defs.FLOAT,
                      index={'i': 0})
  ]
  names = [f'input_{i}' for i in range(inputs)]
  nodes += [
      graph_defs.node(name, 'Tanh', ['x'], here, T=graph_defs.FLOAT)
      for name in names
  ]
  nodes += [
      graph_defs.node('sum', 'AddN', names, here, T=graph_defs.FLOAT, N=size,
                      **attributes),
      graph_defs.node('reader', 'Exp', ['sum'], devices[reader],
                      T=graph_defs.FLOAT),
      graph_defs.node('after', 'NoOp', ['^sum'], here)
  ]
  source = graph_defs.source(graph_defs.graph_def(*nodes),
                             devices=tuple(devices))
  groups = graph_defs.groups(graph_def_io.read(source, live=True))
  return {n for n, group in groups.items() if group == groups['sum']} - {'sum'}


def test_a_sum_of_three_stays_with_its_reader():
  assert _with_sum(_HOSTS) == {'reader'}


def test_a_sum_that_is_read_elsewhere_has_its_later_inputs_beside_it():
  assert _with_sum(_HOSTS, inputs=4, reader=1) == {'input_2', 'input_3'}


@pytest.mark.parametrize('devices, changes', [
    (_ONE_HOST, {}),
    (_HOSTS, {'inputs': 2}),
    (_HOSTS, {'_gdp_leave_alone': {'b': True}}),
])
def test_others_are_free(devices, changes):
  assert not _with_sum(devices, **changes)
