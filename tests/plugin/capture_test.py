import os

import pytest
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.plugin import capture
from gdp_grappler.plugin import current_call


def _graph(*origins):
  graph = graph_pb2.GraphDef()
  for i, names in enumerate(origins):
    node = graph.node.add(name=f'n{i}', op='NoOp')
    node.experimental_debug_info.original_func_names.extend(names)
  return graph


@pytest.mark.parametrize('graph_id, origins, expected', [
    ('__inference_outer_1', [['__inference_step_873']] * 2 + [[]], 'outer'),
    ('tf_graph', [['__inference_step_873']] * 2 + [[]], 'step'),
    ('__forward_f_12', [[]], 'f'),
    ('__inference___backward_f_78_220', [[]], '__backward_f'),
    ('tf_graph', [[], [], ['__inference_a_2']], 'tf_graph'),
    ('', [], ''),
])
def test_readable_name(graph_id, origins, expected):
  assert capture.readable_name(graph_id, _graph(*origins)) == expected


def test_most_of_a_large_graph_names_it():
  names = [['__inference_step_1']] * 70_000 + [['__inference_helper_2']
                                              ] * 30_000
  assert capture.readable_name('tf_graph', _graph(*names)) == 'step'


def test_a_graph_is_named_by_what_was_called_not_by_what_that_calls(tmp_path):
  """Once the graph of a user's function had the name of a model it called."""
  name = capture.readable_name('__inference_serve_3',
                               _graph(*[['__inference___call___2']] * 3))
  path = capture.write(source_graph.SourceGraph(name, _graph([])), 'abcdef',
                       str(tmp_path))
  assert path.name == 'serve_1_abcdef.pb'


@pytest.mark.parametrize(
    'name, file',
    [('initialize_variables', 'initial_values_of_variables_1_abcdef.pb'),
     ('signature_wrapper_mine', 'signature_of_a_SavedModel_mine_1_abcdef.pb')])
def test_files_have_names_that_users_know(tmp_path, name, file):
  path = capture.write(source_graph.SourceGraph(name, _graph([])), 'abcdef',
                       str(tmp_path))
  assert path.name == file


def test_writes_what_can_be_read(tmp_path):
  source = source_graph.SourceGraph('a/b <c>', _graph([], []), ('n0',), ('n1',),
                                    ('/d',))
  path = capture.write(source, '0123456789', str(tmp_path / 'x' / 'y'))
  assert path == tmp_path / 'x' / 'y' / 'a_b_c__2_012345.pb'
  assert list(path.parent.iterdir()) == [path]
  read = source_graph.from_meta_graph(
      meta_graph_pb2.MetaGraphDef.FromString(path.read_bytes()))
  assert (read.name, read.feeds, read.fetches,
          read.devices) == ('a/b <c>', ('n0',), ('n1',), ('/d',))
  assert read.graph_def == source.graph_def


def test_a_step_of_keras_has_the_name_of_what_the_user_called(tmp_path):
  """Once the graphs of all models were called 'one_step_on_data'."""
  call = current_call.Named('evaluate of "net"')
  for name, expected in (('one_step_on_data', 'evaluate_of_net'), ('mine',
                                                                   'mine')):
    path = capture.write(source_graph.SourceGraph(name, _graph([])), 'abcdef',
                         str(tmp_path), call)
    assert path.name == f'{expected}_1_abcdef.pb'
    read = meta_graph_pb2.MetaGraphDef.FromString(path.read_bytes())
    assert source_graph.from_meta_graph(read).name == expected


def test_same_graph_is_written_once(tmp_path):
  source = source_graph.SourceGraph('a', _graph([]))
  path = capture.write(source, 'abcdef', str(tmp_path))
  os.utime(path, (1, 1))
  assert capture.write(source, 'abcdef', str(tmp_path)) == path
  assert path.stat().st_mtime == 1


def test_a_folder_that_cannot_be_searched_is_an_error_for_users(tmp_path):
  """Once the line asked the user to report a failure of the plugin."""
  graph = source_graph.SourceGraph('f', _graph([]))
  with pytest.raises(errors.GdpError, match='File name too long'):
    capture.write(graph, 'abcdef', str(tmp_path / ('x' * 5000)))


def test_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):

  def full(*_):
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(os, 'replace', full)
  with pytest.raises(errors.GdpError, match='No space left'):
    capture.write(source_graph.SourceGraph('a', _graph([])), 'abc',
                  str(tmp_path))
  assert list(tmp_path.iterdir()) == []
