"""The process that traces finds the user's modules, and only those."""

import pytest

from gdp_grappler import errors
from gdp_grappler.graph.sources import sources
from gdp_grappler.graph.sources import tracing

pytestmark = pytest.mark.e2e

_MODELS = '''
import keras

def dense():
  return keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
'''


def test_a_function_in_a_folder_that_holds_a_random_py(tmp_path, monkeypatch):
  """Importing TensorFlow executed it, since the folder came first."""
  (tmp_path / 'models_of_mine.py').write_text(_MODELS)
  (tmp_path / 'random.py').write_text('raise RuntimeError("not the real one")')
  monkeypatch.chdir(tmp_path)
  source = sources.load('models_of_mine:dense')
  assert 'MatMul' in {node.op for node in source.graph_def.node}


def test_a_process_that_fails_is_one_line(monkeypatch):
  monkeypatch.setattr(tracing, '_WORKER', 'helpers.child_functions:refuse')
  with pytest.raises(errors.InvalidGraphError) as caught:
    tracing.trace('keras', 'a.keras', 'a', 1, print)
  assert str(caught.value).startswith(
      'Tracing a.keras failed: ValueError: two lines. Capture its graph with '
      'GDP_CAPTURE_DIR')
