import pytest
import tensorflow as tf

from gdp_grappler.graph import name_parts


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
