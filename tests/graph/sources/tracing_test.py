"""The process that traces finds the user's modules, and only those."""

import subprocess
import sys

import pytest

from gdp_grappler import errors
from gdp_grappler.graph.legality import asked
from gdp_grappler.graph.sources import sources
from gdp_grappler.graph.sources import tracing
from helpers import fresh
from helpers import warm

pytestmark = pytest.mark.e2e

_MODELS = '''
import keras

def dense():
  return keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
'''

_WHOSE = '''
import pathlib
import tensorflow as tf

def dense():
  model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2)])
  package = type(model).__module__.split(".")[0]
  pathlib.Path("package").write_text(package)
  return model
'''

_ON_HOST = '''
import keras
import tensorflow as tf

def words():
  inputs = keras.Input((8,), dtype='int32')
  with tf.device('/CPU:0'):
    table = keras.layers.Embedding(50, 4, name='words')
    table.build()
  return keras.Model(inputs, keras.layers.Dense(2)(table(inputs)))
'''


def test_weights_of_a_function_stay_where_its_tf_device_says(
    tmp_path, monkeypatch):
  """A table of words was placed on a GPU without a word."""
  (tmp_path / 'words_of_mine.py').write_text(_ON_HOST)
  monkeypatch.chdir(tmp_path)
  with warm.cold():
    source = sources.load('words_of_mine:words')
  wishes = {
      asked.device(node)[-5:] for node in source.graph_def.node
      if asked.ATTRIBUTE in node.attr
  }
  assert wishes == {'CPU:0'}
  # Others were made outside of the scope.
  assert asked.count(source)[0] == 1


def test_a_function_in_a_folder_that_holds_a_random_py(tmp_path, monkeypatch):
  """Importing TensorFlow executed it, since the folder came first."""
  (tmp_path / 'models_of_mine.py').write_text(_MODELS)
  (tmp_path / 'random.py').write_text('raise RuntimeError("not the real one")')
  monkeypatch.chdir(tmp_path)
  with warm.cold():
    source = sources.load('models_of_mine:dense')
  assert 'MatMul' in {node.op for node in source.graph_def.node}


@pytest.mark.parametrize('chosen, package',
                         [({}, 'keras'),
                          ({'TF_USE_LEGACY_KERAS': '1'}, 'tf_keras')])
def test_the_keras_of_a_function_is_the_users(tmp_path, chosen, package):
  """It was Keras 3, whatever TF_USE_LEGACY_KERAS said."""
  (tmp_path / 'whose.py').write_text(_WHOSE)
  done = subprocess.run([
      sys.executable, '-m', 'gdp_grappler.bin.gdp', 'place', 'whose:dense',
      '--cluster=2xP100', '--placer=single_device', '--output=plan.json'
  ], cwd=tmp_path, env=fresh.environment(**chosen), capture_output=True,
                        text=True, timeout=280, check=False)
  assert done.returncode == 0, done.stderr
  assert (tmp_path / 'package').read_text() == package


def test_a_process_that_fails_is_one_line(monkeypatch):
  monkeypatch.setattr(tracing, '_WORKER', 'helpers.child_functions:refuse')
  with pytest.raises(errors.InvalidGraphError) as caught:
    tracing.trace('keras', 'a.keras', 'a', 1, print)
  assert str(caught.value).startswith(
      'Tracing a.keras failed: ValueError: two lines. Capture its graph with '
      'GDP_CAPTURE_DIR')
