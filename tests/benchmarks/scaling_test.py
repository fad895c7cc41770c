"""Graphs of any size, and what their stages take."""

import json
import sys

import pytest

from gdp_grappler.processes import calls
from helpers import benchmarks
from helpers import fresh
from helpers import warm

pytestmark = pytest.mark.e2e
_GRAPHS = ('transformer', 'recurrent')
_KEYS = ['graph', 'ops', 'stage', 'seconds', 'cpu_seconds', 'rss_bytes']
_STAGES = ['read', 'coarsen', 'features', 'm-ETF', 'policy', 'price', 'write']
_PAGE = '''# Page
<!-- seconds and memory by ops; made by nobody. -->
<!-- End of seconds and memory by ops. -->
more
'''
_REFUSED = {
    'many': ('--ops=many',),
    'from 1000 on': ('--ops=300',),
    'invalid choice': ('--graphs=x',),
    'absent.md': ('--page=absent.md',),
}

# Trains by graphs that were stitched together, and says what became of each.
_TRAINS = f'''{warm.MARK}import json, sys
sys.path.insert(0, {str(benchmarks.TOP)!r})
import numpy as np
import tensorflow as tf
from benchmarks import large_graphs
from gdp_grappler.graph import graph_def_io
v1 = tf.compat.v1
read = lambda op: tf.raw_ops.ReadVariableOp(resource=op.outputs[0],
                                            dtype=tf.float32)
shape = lambda op: tf.TensorShape(op.get_attr('shape')).as_list()

def trained(name):
  source = large_graphs.GRAPHS[name](1500)
  ops = graph_def_io.read(source).num_ops
  with tf.Graph().as_default() as graph, v1.Session() as session:
    tf.import_graph_def(source.graph_def, name='')
    all_ops = graph.get_operations()
    updates = [op for op in all_ops if op.type in (
        'AssignSubVariableOp', 'ResourceApplyGradientDescent')]
    handles = [op for op in all_ops if op.type == 'VarHandleOp']
    rng = np.random.default_rng(1)
    # Each run by itself would prepare the graph once more.
    session.run([tf.raw_ops.AssignVariableOp(
        resource=op.outputs[0], value=tf.constant(
            .1 * rng.normal(size=shape(op)), tf.float32)) for op in handles])
    tensors = [graph.get_tensor_by_name(f + ':0') for f in source.feeds]
    feeds = dict((t, rng.normal(size=t.shape)) for t in tensors)
    before = session.run([read(op) for op in handles])
    session.run(updates, feeds)
    after = session.run([read(op) for op in handles])
  return dict(
      ops=ops, variables=len(handles), updates=len(updates),
      moved=sum(bool((a != b).any()) for a, b in zip(before, after)),
      finite=all(bool(np.isfinite(a).all()) for a in after))

print(json.dumps(dict((name, trained(name)) for name in {_GRAPHS!r})))
'''


@pytest.fixture(name='trained', scope='module')
def _trained():
  """What became of each graph."""
  return fresh.run_code(_TRAINS).results


@pytest.mark.parametrize('graph', _GRAPHS)
def test_graphs_have_their_size_and_train(graph, trained):
  found = trained[graph]
  assert 1000 < found['ops'] < 2000
  assert found['moved'] == found['updates'] == found['variables'] >= 4
  assert found['finite']


def test_every_stage_has_a_row_and_the_page_a_picture(tmp_path):
  (tmp_path / 'page.md').write_text(_PAGE)
  finished = benchmarks.run('scaling', '--ops', '1000', '2000', '--json',
                            '--graphs=recurrent', '--page=page.md',
                            folder=tmp_path)
  rows = json.loads(finished.stdout)
  assert [row['stage'] for row in rows] == 2 * _STAGES
  for row in rows:
    assert list(row) == _KEYS and row['graph'] == 'recurrent'
    assert row['ops'] > 500 and row['seconds'] > 0
    assert row['rss_bytes'] > 1e6
  text = (tmp_path / 'page.md').read_text()
  assert text.count('| recurrent |') == 2 and text.endswith('more\n')
  assert (tmp_path / 'page.png').stat().st_size > 1000


def test_what_cannot_be_used_is_refused(tmp_path):
  finished = benchmarks.run_all('scaling', list(_REFUSED.values()), tmp_path)
  for said, each in zip(_REFUSED, finished):
    assert each.code == 2 and said in each.stderr


def test_what_was_measured_is_shown_whatever_fails(tmp_path, monkeypatch,
                                                   capsys):
  """A failure of the last graph, or of the picture, lost a run of hours."""
  scaling = benchmarks.module('scaling')

  def measured(graph, ops):
    if ops == 2000:
      raise calls.CallError('out of memory')
    return [
        dict(zip(_KEYS, (graph, ops, stage, 1., 1., 1e9))) for stage in _STAGES
    ]

  monkeypatch.setattr(scaling, '_rows', measured)
  page = tmp_path / 'page.md'
  page.write_text(_PAGE)
  argv = '--quiet', f'--page={page}', '--graphs=recurrent', '--ops'
  assert scaling.main((*argv, '1000', '2000')) == 1
  shown = capsys.readouterr()
  assert 'recurrent  1,000' in shown.out and '2,000' not in shown.out
  assert 'recurrent, 2,000 ops: left out: out of memory' in shown.err
  (tmp_path / 'page.png').unlink()
  (tmp_path / 'page.png').mkdir()
  assert scaling.main((*argv, '1000')) == 2
  shown = capsys.readouterr()
  assert 'recurrent  1,000' in shown.out and 'page.png' in shown.err
  assert '| recurrent |' in page.read_text()
  assert scaling.main((*argv, '2000')) == 2
  assert '| recurrent |' in page.read_text()


def test_a_picture_that_cannot_be_drawn_is_an_error_at_the_start(
    tmp_path, monkeypatch, capsys):
  """A missing matplotlib was found after hours of measuring."""
  scaling = benchmarks.module('scaling')
  monkeypatch.setitem(sys.modules, 'matplotlib', None)
  monkeypatch.setattr(scaling, '_rows', lambda *case: pytest.fail('measured'))
  (tmp_path / 'page.md').write_text(_PAGE)
  assert scaling.main(('--quiet', f'--page={tmp_path / "page.md"}')) == 2
  assert 'The picture needs the package matplotlib' in capsys.readouterr().err
