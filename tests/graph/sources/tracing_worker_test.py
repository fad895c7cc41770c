"""What a trace leaves in its process; `sources_test` reads its graphs."""

import sys

import keras
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
import tf_keras

from gdp_grappler import errors
from gdp_grappler.graph.sources import tracing_worker


def test_an_interrupted_trace_ends_the_collection_of_graphs():
  """After Ctrl-C, the next trace in a process got graphs of the first."""

  def interrupted():
    raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    tracing_worker.collect(interrupted, 'model', 'x')
  tf.function(lambda: tf.random.normal([2]))()
  assert not context.export_run_metadata().function_graphs


def _saved(api, path):
  inputs = api.Input((3,))
  api.Model(inputs, api.layers.Dense(2)(inputs)).save(path)
  return str(path)


@pytest.mark.parametrize('ending', ['h5', 'keras'])
@pytest.mark.parametrize('api', [keras, tf_keras], ids=['keras', 'tf_keras'])
@pytest.mark.filterwarnings('ignore:You are saving your model as an HDF5')
@pytest.mark.filterwarnings('ignore:__array__ impl:DeprecationWarning')
def test_the_keras_that_wrote_a_file_reads_it(tmp_path, api, ending):
  """Keras 3 read files of tf_keras, and an error named a class of its own."""
  path = _saved(api, tmp_path / f'model.{ending}')
  assert isinstance(tracing_worker.load_keras(path), api.Model)


def test_a_file_of_tf_keras_needs_tf_keras(tmp_path, monkeypatch):
  path = _saved(tf_keras, tmp_path / 'model.keras')
  monkeypatch.setitem(sys.modules, 'tf_keras', None)
  with pytest.raises(errors.InvalidGraphError, match='install tf_keras, or'):
    tracing_worker.load_keras(path)
