import pytest
import tensorflow as tf

from gdp_grappler.graph import name_parts


@pytest.mark.parametrize('tensor', ['a', 'a:1', '^a'])
def test_nodes_of_tensors(tensor):
  assert name_parts.node_of(tensor) == 'a'


@pytest.mark.parametrize('name, bare', [
    ('PartitionedCall_2/gradient_tape/net/dense_1/MatMul',
     'net/dense_1/MatMul'),
    ('StatefulPartitionedCall/net/Func/x', 'net/Func/x'),
    ('gradients_1/net/x', 'net/x'),
    ('gradients', 'gradients'),
])
def test_scopes_of_callers_go(name, bare):
  assert name_parts.without_callers(name) == bare


def test_callers_and_numbers():
  assert name_parts.is_caller('StatefulPartitionedCall_3')
  assert not name_parts.is_caller('net') and not name_parts.is_caller('')
  assert name_parts.without_number('dense_12') == 'dense'
  assert name_parts.without_number('dense') == 'dense'


@pytest.mark.parametrize('name, scopes',
                         [('Func/net/call/input/_2', 'Func/net/call/_2'),
                          ('while/enter/_3', 'while/_3'),
                          ('net/dense/MatMul', 'net/dense/MatMul'),
                          ('input', 'input'),
                          ('while/body/_64/input', 'while/body/_64/input')])
def test_what_only_looks_like_a_scope_is_left_out(name, scopes):
  assert name_parts.without_infix(name) == scopes


@pytest.mark.parametrize('name, is_gradient', [
    ('gradient_tape/net/a/MatMul', True),
    ('StatefulPartitionedCall/gradients/a_grad/mul', True),
    ('net/gradients_of/mul', False),
    ('net/gradient_tape', False),
])
def test_gradients_are_known_by_name(name, is_gradient):
  assert name_parts.is_gradient(name) == is_gradient


@pytest.mark.parametrize('name, guess', [
    ('net/dense/MatMul_variable', True),
    ('net/dense/variable', True),
    ('net/dense/variable/slot_2', True),
    ('net/dense/kernel', False),
    ('variables/dense/bias', False),
])
def test_names_that_were_made_up_are_known(name, guess):
  assert name_parts.is_guess(name) == guess


@pytest.mark.parametrize('part, is_op', [('BiasAdd', True), ('BiasAdd_1', True),
                                         ('dense_1', False), ('dense', False)])
def test_the_registry_tells_ops_from_scopes(part, is_op):
  assert tf  # The registry is there.
  assert name_parts.names_an_op(part) == is_op
