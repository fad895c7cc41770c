"""What a trace leaves in its process; `sources_test` reads its graphs."""

import pathlib

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


@pytest.mark.filterwarnings('ignore:You are saving your model as an HDF5')
@pytest.mark.parametrize('ending', ['h5', 'keras'])
def test_code_in_a_file_never_runs(tmp_path, ending):
  """tf_keras runs the functions of a file's Lambda layers."""
  trace = tmp_path / 'trace'
  inputs = tf_keras.Input((3,))
  path = str(trace)

  def leave_a_trace(x):
    pathlib.Path(path).touch()
    return x

  outputs = tf_keras.layers.Lambda(leave_a_trace)(inputs)
  tf_keras.Model(inputs, outputs).save(tmp_path / f'model.{ending}')
  trace.unlink()
  with pytest.raises(errors.InvalidGraphError):
    tracing_worker.load_keras(str(tmp_path / f'model.{ending}'))
  assert not trace.exists()


def test_a_file_of_keras_2_is_named_as_such(tmp_path):
  """The error named a class of Keras, and told to save the file again."""
  path = _saved(tf_keras, tmp_path / 'model.keras')
  with pytest.raises(errors.InvalidGraphError,
                     match='Keras 2 wrote it: give a SavedModel'):
    tracing_worker.load_keras(path)


@pytest.mark.filterwarnings('ignore:You are saving your model as an HDF5')
@pytest.mark.filterwarnings('ignore:__array__ impl:DeprecationWarning')
@pytest.mark.parametrize('ending', ['h5', 'keras'])
def test_a_file_of_keras_3_is_read(tmp_path, ending):
  path = _saved(keras, tmp_path / f'model.{ending}')
  assert isinstance(tracing_worker.load_keras(path), keras.Model)
