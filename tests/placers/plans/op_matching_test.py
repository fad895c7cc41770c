from gdp_grappler.placers.plans import op_matching

_MODEL = {
    's/dense/MatMul': 'GPU:0', 's/dense_1/MatMul': 'GPU:1',
    's/dense_1/Add': 'GPU:1', 'gradient_tape/s/dense/MatMul_1': 'GPU:0'
}
_AGAIN = [
    's_1/dense_2/MatMul', 's_1/dense_3/MatMul', 's_1/dense_3/Add',
    'gradient_tape/s_1/dense_2/MatMul_1'
]


def test_the_same_model_made_again_has_the_same_devices():
  assert op_matching.candidates(_MODEL, _AGAIN) == [{'GPU:0'}, {'GPU:1'},
                                                    {'GPU:1'}, {'GPU:0'}]


def test_with_another_number_of_siblings_ranks_do_not_count():
  found = op_matching.candidates(
      _MODEL, [*_AGAIN, 's_1/dense_4/MatMul', 's_1/dense_4/Add'])
  # Without numbers all layers are `dense`, and their products are on both
  # devices. Among the gradients there is still one layer.
  both = {'GPU:0', 'GPU:1'}
  assert found == [both, both, {'GPU:1'}, {'GPU:0'}, both, {'GPU:1'}]


def test_ranks_come_first_if_they_fit_all_ops():
  """The op of layer `dense_1` got the device of another layer `dense_1`."""
  again = [name.replace('s/', 's_1/') for name in _MODEL]
  again = [
      name.replace('dense_1/', 'dense_2/').replace('dense/', 'dense_1/')
      for name in again
  ]
  assert op_matching.candidates(
      _MODEL, again) == [{device} for device in _MODEL.values()]


def test_the_full_name_comes_first():
  assert op_matching.candidates({'x_1': 'GPU:0', 'x_2': 'GPU:1'},
                                ['x_2', 'x_3', 'y']) == [{'GPU:1'}, {'GPU:1'},
                                                         set()]


def test_ranks_are_found_where_other_functions_call_the_model():
  """In `predict` after `fit`, the model made again once had no device."""
  plan = {f'StatefulPartitionedCall/{op}': at for op, at in _MODEL.items()}
  assert op_matching.candidates(plan, _AGAIN[:3]) == [{'GPU:0'}, {'GPU:1'},
                                                      {'GPU:1'}]


def test_full_names_come_first_where_other_functions_call_the_model():
  """Ranks gave `dense_1` the device of `dense` if `dense` was not called."""
  plan = {f'StatefulPartitionedCall/{op}': at for op, at in _MODEL.items()}
  graph = ['PartitionedCall/s/dense_1/MatMul', 'PartitionedCall/s/dense/MatMul']
  assert op_matching.candidates(plan, graph) == [{'GPU:1'}, {'GPU:0'}]
  graph[1] = 'PartitionedCall/s/dense_2/MatMul'
  assert op_matching.candidates(plan, graph) == [{'GPU:1'}, {'GPU:1'}]


def test_ranks_without_calls_come_first_if_they_fit_all_ops():
  plan = {
      'StatefulPartitionedCall/dense/MatMul': 'GPU:0',
      'StatefulPartitionedCall/dense_1/MatMul': 'GPU:1'
  }
  graph = ['PartitionedCall/dense_1/MatMul', 'PartitionedCall/dense_2/MatMul']
  assert op_matching.candidates(plan, graph) == [{'GPU:0'}, {'GPU:1'}]
