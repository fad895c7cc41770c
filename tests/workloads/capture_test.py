"""A captured workload is what the pass is shown in a program that trains."""

import dataclasses
import types

import pytest
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from gdp_grappler.workloads import capture
from gdp_grappler.workloads import rnnlm
from gdp_grappler.workloads import stages
from helpers import fresh

pytestmark = pytest.mark.e2e

_NAME = 'rnnlm-2@tiny'
_WORKLOAD = next(w for w in rnnlm.WORKLOADS if w.name == _NAME)
# A training loop of a user's, with the settings that make a graph the same
# everywhere.
_TRAIN = f'''
import numpy as np
import tensorflow as tf
from gdp_grappler.workloads import rnnlm

tf1 = tf.compat.v1
workload = next(w for w in rnnlm.WORKLOADS if w.name == {_NAME!r})
with tf.Graph().as_default() as graph:
  loss = workload.build()
  step = workload.optimizer().minimize(loss, name='train')
  config = tf1.ConfigProto()
  rewriting = config.graph_options.rewrite_options
  rewriting.memory_optimization = rewriting.NO_MEM_OPT
  with tf1.Session(config=config) as session:
    session.run(tf1.global_variables_initializer())
    ids = graph.get_tensor_by_name('ids:0')
    session.run(step, {{ids: np.zeros(ids.shape, int)}})
'''


@pytest.fixture(name='cache')
def _cache(tmp_path, monkeypatch):
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path / 'cache'))
  return tmp_path / 'cache'


@pytest.fixture(scope='module', name='folder')
def _folder(tmp_path_factory):
  return tmp_path_factory.mktemp('cache')


@pytest.fixture(scope='module', name='built')
def _built(folder):
  """A graph, and what was said while it was built."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv('GDP_CACHE_DIR', str(folder))
    told = []
    return capture.capture(_WORKLOAD, rnnlm, told.append), told


def _nodes(source):
  return {
      n.name: n.SerializeToString(deterministic=True)
      for n in source.graph_def.node
  }


def test_equals_what_the_pass_sees_while_training(built, tmp_path):
  finished = fresh.run_code(_TRAIN, GDP_CAPTURE_DIR=str(tmp_path),
                            TF_ENABLE_ONEDNN_OPTS='0')
  assert finished.code == 0, finished.stderr
  seen = max((source_graph.from_meta_graph(
      meta_graph_pb2.MetaGraphDef.FromString(path.read_bytes()))
              for path in tmp_path.iterdir()),
             key=lambda s: len(s.graph_def.node))
  assert _nodes(built[0]) == _nodes(seen)
  assert built[0].feeds == seen.feeds == ('ids',)
  assert built[0].fetches == seen.fetches == ('train',)
  assert built[0].devices == seen.devices


def test_is_a_training_step_with_all_stages(built):
  source, told = built
  assert source.name == _NAME and len(told) == 1
  graph = graph_def_io.read(source)
  assert 100 < graph.num_ops < 1000
  assert {'MatMul', 'SigmoidGrad',
          'ResourceApplyGradientDescent'} <= set(graph.op_types)
  assert set(stages.of(graph).tolist()) == {0, 1, 2}


def test_is_built_once(built, folder, monkeypatch):
  monkeypatch.setenv('GDP_CACHE_DIR', str(folder))
  told = []
  again = capture.capture(_WORKLOAD, rnnlm, told.append)
  assert not told and str(folder) in built[1][0]
  assert _nodes(again) == _nodes(built[0])
  (path,) = (folder / 'workloads').iterdir()
  assert path == capture.cache_path(_WORKLOAD, rnnlm)


def test_for_gpus_is_kept_apart(built, folder, monkeypatch):
  """A graph that was built for CPUs is not served for GPUs, nor back."""
  monkeypatch.setenv('GDP_CACHE_DIR', str(folder))
  told = []
  on_gpus = capture.capture(_WORKLOAD, rnnlm, told.append, '6.1')
  assert len(told) == 1 and on_gpus.fetches == built[0].fetches
  types = [{n.op for n in s.graph_def.node} for s in (built[0], on_gpus)]
  assert '_FusedMatMul' in types[0] and '_FusedMatMul' not in types[1]
  assert {n.device[-5:] for n in on_gpus.graph_def.node} == {'GPU:0'}
  assert set(stages.of(graph_def_io.read(on_gpus)).tolist()) == {0, 1, 2}
  # Grappler treats these cards alike.
  path = capture.cache_path(_WORKLOAD, rnnlm, '6.0')
  assert path.exists() and path != capture.cache_path(_WORKLOAD, rnnlm, '8.0')
  assert _nodes(capture.capture(_WORKLOAD, rnnlm, told.append,
                                '3.5')) == _nodes(on_gpus)
  assert len(told) == 1
  path.unlink()


@pytest.mark.parametrize('damage', [
    lambda data: b'', lambda data: data[:-1], lambda data: data + b'0',
    lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]
], ids=['empty', 'short', 'long', 'one bit'])
def test_damage_is_noticed(built, folder, tmp_path, damage):
  del built
  (path,) = (folder / 'workloads').iterdir()
  copy = tmp_path / 'copy.pb'
  copy.write_bytes(path.read_bytes())
  assert capture.cached(copy, print) is not None
  copy.write_bytes(damage(path.read_bytes()))
  assert capture.cached(copy, print) is None


def _renamed(source):
  return dataclasses.replace(source, name='rnnlm-4@tiny')


def _without_a_node(source):
  less = type(source.graph_def)()
  less.CopyFrom(source.graph_def)
  del less.node[len(less.node) // 2]
  return dataclasses.replace(source, graph_def=less)


def _fetching_nothing(source):
  return dataclasses.replace(source, fetches=('nowhere',))


@pytest.mark.parametrize('change',
                         [_renamed, _without_a_node, _fetching_nothing])
def test_another_graph_in_the_cache_is_built_again(cache, built, monkeypatch,
                                                   change):
  source, _ = built
  right, wrong = (
      g.to_meta_graph().SerializeToString() for g in (source, change(source)))
  monkeypatch.setattr(capture, '_build', lambda *_: right)
  path = capture.cache_path(_WORKLOAD, rnnlm)
  path.parent.mkdir(parents=True)
  path.write_bytes(capture._digest(wrong) + wrong)
  told = []
  again = capture.capture(_WORKLOAD, rnnlm, told.append)
  assert _nodes(again) == _nodes(source) and len(told) == 1
  assert path.read_bytes().endswith(right) and cache in path.parents


def test_a_wrong_digest_inside_is_built_again(built, tmp_path):
  meta_graph = built[0].to_meta_graph()
  meta_graph.collection_def['gdp_digest'].bytes_list.value[0] = b'0' * 64
  data = meta_graph.SerializeToString()
  path = tmp_path / 'copy.pb'
  path.write_bytes(capture._digest(data) + data)
  assert capture.cached(path, print) is None


def test_damaged_cache_is_built_again(cache, built, folder, monkeypatch):
  del built
  (whole,) = (folder / 'workloads').iterdir()
  data = whole.read_bytes()[len(capture._digest(b'')):]
  monkeypatch.setattr(capture, '_build', lambda *_: data)
  path = capture.cache_path(_WORKLOAD, rnnlm)
  path.parent.mkdir(parents=True)
  path.write_bytes(b'no graph')
  told = []
  assert capture.capture(_WORKLOAD, rnnlm, told.append).name == _NAME
  assert len(told) == 1 and capture.cached(path, print) is not None
  assert cache in path.parents


def test_other_code_is_another_place(tmp_path, cache):

  def path(text):
    (tmp_path / 'family.py').write_text(text)
    family = types.ModuleType('family')
    family.__file__ = str(tmp_path / 'family.py')
    return capture.cache_path(_WORKLOAD, family)

  assert path('a = 1') == path('a = 1') != path('a = 2')
  assert cache in path('a = 1').parents


def test_modules_of_a_family_count(monkeypatch, tmp_path, cache):
  before = capture.cache_path(_WORKLOAD, rnnlm)
  (tmp_path / 'recurrent.py').write_text('')
  monkeypatch.setattr(rnnlm.recurrent, '__file__',
                      str(tmp_path / 'recurrent.py'))
  assert capture.cache_path(_WORKLOAD, rnnlm) != before
  assert cache in before.parents


def test_one_that_cannot_be_built_says_so(cache):
  unknown = dataclasses.replace(_WORKLOAD, name='rnnlm-2@unheard')
  with pytest.raises(errors.InvalidGraphError,
                     match='Building rnnlm-2@unheard failed.*Unknown workload'):
    capture.capture(unknown, rnnlm, print)
  assert not cache.exists()


def test_a_cache_that_cannot_be_written_costs_one_line(monkeypatch, tmp_path,
                                                       built, folder):
  del built
  (path,) = (folder / 'workloads').iterdir()
  data = path.read_bytes()[len(capture._digest(b'')):]
  monkeypatch.setattr(capture, '_build', lambda *_: data)
  (tmp_path / 'file').write_text('')
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path / 'file'))
  told = []
  graph = capture.capture(_WORKLOAD, rnnlm, told.append)
  assert graph.graph_def.node
  building, line = told
  # Nothing is said to be kept before it is.
  assert building == (f'Building {_NAME}, to keep it in '
                      f'{tmp_path / "file" / "workloads"}.')
  assert 'Not kept for the next time' in line
