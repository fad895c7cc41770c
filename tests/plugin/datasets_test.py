import inspect
import types

import pytest
import tensorflow as tf
from tensorflow.python.data.ops import structured_function

from gdp_grappler.plugin import datasets


@pytest.fixture(name='variable', params=['noted', 'looked for'])
def _variable(request, monkeypatch):
  """A variable, with and without the hook of `import tensorflow`."""
  cls = structured_function.StructuredFunctionWrapper
  monkeypatch.setattr(cls, '__init__', inspect.unwrap(cls.__init__))
  if request.param == 'noted':
    datasets._wrap(structured_function)
  return tf.Variable(1.)


def test_a_variable_is_captured_while_a_dataset_reads_it(variable):
  other = tf.Variable(2.)
  data = tf.data.Dataset.range(2).map(lambda _: variable + 1.)
  assert id(variable.handle) in datasets.captured()
  assert id(other.handle) not in datasets.captured()
  iterator = iter(data)
  del data
  assert id(variable.handle) in datasets.captured()
  del iterator
  assert id(variable.handle) not in datasets.captured()


def test_wraps_once(variable):
  del variable
  module = types.SimpleNamespace(
      StructuredFunctionWrapper=type('Wrapper', (), {}))
  datasets._wrap(module)
  wrapped = module.StructuredFunctionWrapper.__init__
  datasets._wrap(module)
  assert module.StructuredFunctionWrapper.__init__ is wrapped


def test_a_module_that_is_half_imported_is_left_alone():
  datasets._wrap(types.SimpleNamespace())
