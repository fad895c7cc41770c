import pytest

from gdp_grappler.graph import graph_def_io
from helpers import graph_defs

_FLOAT = graph_defs.FLOAT


def _conv_step(bias_device=0, **attributes):
  """A gradient that a filter and a bias wait for."""
  cpu = graph_defs.CPU(0)
  arguments = [
      graph_defs.node(name, '_Arg', device=cpu, T=_FLOAT, index={'i': i})
      for i, name in enumerate(('x', 'sizes', 'g'))
  ]
  arguments[1].attr['T'].type = 3
  strides = {'list': {'i': [1, 1, 1, 1]}}
  return graph_defs.graph_def(
      *arguments,
      graph_defs.node('filter', 'Conv2DBackpropFilter', ['x', 'sizes', 'g'],
                      cpu, T=_FLOAT, strides=strides, padding=b'SAME'),
      graph_defs.node('bias', 'BiasAddGrad', ['g'], graph_defs.CPU(bias_device),
                      T=_FLOAT, **attributes))


def _share(definition, live=True):
  graph = graph_def_io.read(graph_defs.source(definition), live=live)
  groups = graph_defs.groups(graph)
  return groups['filter'] == groups['bias']


def test_filter_and_bias_of_one_gradient_stay_together():
  assert _share(_conv_step())


def test_only_in_a_graph_that_is_about_to_run():
  assert not _share(_conv_step(), live=False)


@pytest.mark.parametrize('changes', [
    {'bias_device': 1},
    {'_gdp_pin': b'CPU:1'},
    {'_gdp_leave_alone': {'b': True}},
])
def test_not_where_somebody_has_parted_them(changes):
  assert not _share(_conv_step(**changes))


def test_not_with_another_gradient():
  definition = _conv_step()
  definition.node[-1].input[0] = 'x'
  assert not _share(definition)


@pytest.mark.parametrize('first, second, together', [
    ('Relu', 'Relu6', False),
    ('Pad', 'Conv2D', True),
    ('Conv2D', 'BiasAdd', True),
    ('Conv2D', 'Relu', False),
])
def test_chains(first, second, together):
  cpu = graph_defs.CPU(0)
  strides = {'list': {'i': [1, 1, 1, 1]}}
  nodes = [
      graph_defs.node('x', '_Arg', device=cpu, T=_FLOAT, index={'i': 0}),
      graph_defs.node('w', '_Arg', device=cpu, T=_FLOAT, index={'i': 1}),
      graph_defs.node('p', '_Arg', device=cpu, T={'type': 3}, index={'i': 2}),
  ]
  more = {'Pad': ['p'], 'Conv2D': ['w'], 'BiasAdd': ['w']}
  previous = 'x'
  for name, op in (('first', first), ('second', second)):
    attributes = {'T': _FLOAT}
    if op == 'Conv2D':
      attributes |= {'strides': strides, 'padding': b'VALID'}
    if op == 'Pad':
      attributes['Tpaddings'] = {'type': 3}
    nodes.append(
        graph_defs.node(name, op, [previous, *more.get(op, ())], cpu,
                        **attributes))
    previous = name
  graph = graph_def_io.read(graph_defs.source(graph_defs.graph_def(*nodes)),
                            live=True)
  groups = graph_defs.groups(graph)
  assert (groups['first'] == groups['second']) == together
