"""GDP_CAPTURE_DIR=DIR python train.py"""

import pytest
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler.graph import source_graph
from gdp_grappler.graph import variable_names
from helpers import fresh

pytestmark = pytest.mark.e2e


@pytest.fixture(scope='module')
def stock():
  return fresh.run('captured.py').results['loss']


@pytest.fixture(scope='module')
def directory(tmp_path_factory):
  return tmp_path_factory.mktemp('made') / 'by' / 'capture'


@pytest.fixture(scope='module')
def finished(directory):
  return fresh.run('captured.py', GDP_CAPTURE_DIR=str(directory))


def _read(path):
  meta_graph = meta_graph_pb2.MetaGraphDef.FromString(path.read_bytes())
  assert source_graph.is_captured(meta_graph)
  return source_graph.from_meta_graph(meta_graph)


def test_program_does_not_notice(finished, stock):
  assert finished.results['loss'] == stock
  assert finished.notices == []


def test_train_step_is_complete(finished, directory):
  assert finished.code == 0
  graphs = [_read(path) for path in directory.iterdir()]
  train = max(graphs, key=lambda g: len(g.graph_def.node))
  names = {node.name for node in train.graph_def.node}
  assert train.name == 'fit_of_sequential'
  assert train.feeds and set(train.feeds) <= names
  assert train.fetches and set(train.fetches) <= names
  assert train.devices == ('/job:localhost/replica:0/task:0/device:CPU:0',)
  assert {'MatMul', '_Arg', '_Retval'} <= {n.op for n in train.graph_def.node}


def test_variables_have_their_names(finished, directory):
  assert finished.code == 0
  train = max(map(_read, directory.iterdir()),
              key=lambda g: len(g.graph_def.node))
  named = {
      variable_names.of(n).removeprefix('sequential/')
      for n in train.graph_def.node
  }
  assert {
      'dense/kernel', 'dense_1/bias', 'adam/sequential_dense_kernel_momentum'
  } <= named


def test_second_run_adds_nothing(finished, directory):
  assert finished.code == 0
  before = sorted(directory.iterdir())
  assert fresh.run('captured.py', GDP_CAPTURE_DIR=str(directory)).code == 0
  assert sorted(directory.iterdir()) == before
