import numpy as np

from gdp_grappler.graph.legality import asked
from helpers import graph_defs

_CPU_1 = '/device:CPU:1'


def _source(*devices):
  return graph_defs.source(
      graph_defs.graph_def(*[
          graph_defs.node(f'n{i}', 'NoOp', device=device)
          for i, device in enumerate(devices)
      ]))


def _wishes(source):
  return [asked.device(node) for node in source.graph_def.node]


def test_devices_of_a_file_are_wishes():
  found = _source('', '/gpu:1')
  assert _wishes(asked.of_file(found)) == ['', '/gpu:1']
  assert _wishes(found) == ['', '']  # Never changed in place.


def test_a_captured_eager_value_has_no_wish():
  """Once a lookup table of a program without tf.device had one."""
  values = [
      graph_defs.node(
          f'n{size}', 'Const', device=_CPU_1,
          value={'tensor': {'tensor_shape': {'dim': [{'size': size}]}}})
      for size in (1, 128, 129)
  ]
  source = graph_defs.source(
      graph_defs.graph_def(graph_defs.node('free', 'NoOp'), *values))
  assert _wishes(asked.of_file(source)) == ['', '', '', _CPU_1]


def test_devices_of_a_placed_graph_are_none():
  assert _wishes(asked.of_file(_source(_CPU_1, _CPU_1))) == ['', '']
  assert _wishes(asked.of_file(_source('', ''))) == ['', '']


def test_kept_are_those_that_have_a_device():
  found = asked.of_file(_source('', '/gpu:1', '/gpu:7'))
  kept = asked.kept(
      found, lambda node: '/device:GPU:1' if '1' in asked.device(node) else '')
  assert _wishes(kept) == ['', '/device:GPU:1', '']
  assert asked.count(kept) == (0, 1)


def test_variables_are_counted_apart():
  source = _source('')
  argument = graph_defs.node('v', '_Arg', T={'type': 20},
                             _handle_dtypes={'list': {'type': [1]}})
  source.graph_def.node.append(argument)
  asked.mark(source.graph_def, lambda node: _CPU_1)
  assert asked.count(source) == (1, 1)


def _impossible(wishes, fixed, groups, cpu_only=()):
  allowed = np.ones((len(wishes), 2), bool)
  allowed[list(cpu_only), 1] = False
  return asked.impossible(wishes, fixed, np.array(groups), allowed).tolist()


def test_wishes_of_a_group_that_agrees_are_possible():
  assert _impossible([_CPU_1, '', _CPU_1], ['', f'/job:localhost{_CPU_1}', ''],
                     [0, 0, 0]) == [False] * 3


def test_wishes_that_tear_a_group_apart_are_impossible():
  assert _impossible([_CPU_1, '/device:CPU:2', _CPU_1], [''] * 3,
                     [0, 0, 1]) == [True, True, False]
  assert _impossible([_CPU_1, ''], ['', '/device:CPU:0'], [0, 0])[0]


def test_wishes_without_a_kernel_are_impossible():
  assert _impossible(['/device:GPU:0', ''], ['', ''], [0, 0],
                     cpu_only=[1]) == [True, False]
  assert _impossible(['/device:TPU:0'], [''], [0]) == [True]
