"""What a file holds, and whether a graph is whole."""

import io
import zipfile

from google.protobuf import text_format
import pytest
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.core.protobuf import saved_model_pb2

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.evaluation.costs import given_costs
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import graph_files
from gdp_grappler.graph.sources import origin
from gdp_grappler.graph.sources import sources
from helpers import graph_defs

_GRAPH = graph_defs.graph_def(graph_defs.node('a', 'NoOp'))


def _archive(*names):
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, 'w') as archive:
    for name in names:
      archive.writestr(name, 'x')
  return buffer.getvalue()


def _read(tmp_path, data):
  path = tmp_path / 'file'
  path.write_bytes(data)
  return graph_files.read(origin.Origin(str(path)))


_SAVED = saved_model_pb2.SavedModel(
    meta_graphs=[meta_graph_pb2.MetaGraphDef(graph_def=_GRAPH)])


@pytest.mark.parametrize(
    'data, kind', [
        (_GRAPH.SerializeToString(), 'meta_graph'),
        (text_format.MessageToString(_GRAPH).encode(), 'meta_graph'),
        (meta_graph_pb2.MetaGraphDef(graph_def=_GRAPH).SerializeToString(),
         'meta_graph'),
        (source_graph.SourceGraph(
            'g', _GRAPH).to_meta_graph().SerializeToString(), 'captured'),
        (_SAVED.SerializeToString(), 'saved_model'),
        (_archive('config.json', 'model.weights.h5'), 'keras'),
        (b'\x89HDF\r\n\x1a\n', 'keras'),
    ], ids=[
        'GraphDef', 'text', 'MetaGraph', 'captured', 'SavedModel', 'zip', 'HDF'
    ])
def test_the_content_tells_the_kind(tmp_path, data, kind):
  content = _read(tmp_path, data)
  assert content.kind == kind
  if kind in ('meta_graph', 'captured'):
    assert content.message.graph_def == _GRAPH


@pytest.mark.parametrize('data, said', [
    (b'', 'is empty (0 bytes)'),
    (b'\n\nhello\nworld', 'it begins with "hello"'),
    (b'\x80\x01\xff\x00\x17', 'cut off or damaged'),
    (b'PK\x03\x04 and no more', 'damaged archive'),
    (_archive('weights'), 'without a Keras model'),
    (graph_pb2.GraphDef(versions={'producer': 1}).SerializeToString(),
     'has no nodes'),
])
def test_what_is_no_graph(tmp_path, data, said):
  with pytest.raises(errors.InvalidGraphError) as error:
    _read(tmp_path, data)
  assert said in str(error.value) and '\n' not in str(error.value)


@pytest.mark.parametrize('name', ['config.json', 'model.weights.h5'])
def test_an_archive_that_unpacks_to_any_size_is_refused(tmp_path, monkeypatch,
                                                        name):
  monkeypatch.setattr(files, 'MOST_TEXT_BYTES', 1 << 20)
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
    for entry in ('config.json', 'model.weights.h5'):
      archive.writestr(entry, bytes(3 << 20) if entry == name else b'{}')
  with pytest.raises(errors.InvalidGraphError, match='unpack to 3145'):
    _read(tmp_path, buffer.getvalue())


def test_weights_of_an_archive_may_be_of_any_size(tmp_path, monkeypatch):
  monkeypatch.setattr(files, 'MOST_TEXT_BYTES', 1 << 10)
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, 'w') as archive:
    archive.writestr('config.json', '{}')
    archive.writestr('model.weights.h5', bytes(1 << 20))
  assert _read(tmp_path, buffer.getvalue()).kind == 'keras'


@pytest.mark.parametrize('start, end', [(origin.HDF5, b''),
                                        (origin.ZIP, _archive('config.json'))])
def test_a_keras_model_may_exceed_the_limit_of_protobuf(tmp_path, start, end):
  """The whole file was read before its kind was known, and 2 GiB refused."""
  path = tmp_path / 'model'
  with path.open('wb') as file:
    file.write(start)
    file.seek(files.MOST_PROTO_BYTES + 1)
    file.write(end)
    file.truncate()
  found = origin.Origin(str(path))
  assert graph_files.read(found).kind == 'keras'
  assert given_costs.load(found) is None
  assert sources.is_traced(found)


@pytest.mark.parametrize('write', [
    graph_pb2.GraphDef.SerializeToString,
    lambda graph: text_format.MessageToString(graph).encode()
], ids=['binary', 'text'])
def test_a_type_of_op_may_have_a_namespace(tmp_path, write):
  """A graph with an op of TensorFlow Text was said to be no graph."""
  graph = graph_defs.graph_def(graph_defs.node('a', 'TFText>Splits'))
  assert _read(tmp_path, write(graph)).message.graph_def == graph


def test_bytes_that_happen_to_parse_are_no_graph(tmp_path):
  odd = graph_defs.graph_def(graph_defs.node('a', 'not an op'))
  with pytest.raises(errors.InvalidGraphError):
    _read(tmp_path, odd.SerializeToString())


@pytest.mark.parametrize('nodes, said', [
    ([], 'it has no nodes'),
    ([('a', 'NoOp'), ('b', 'NoOp'), ('b', 'NoOp')], 'node "b" appears twice'),
    ([('a', 'Identity', ['gone:1'])], '"a" reads "gone:1", which is not in'),
    ([('a', 'NoOp', ['^gone'])], '"a" reads "^gone"'),
    ([('a', 'NoSuchOp')], 'does not know its op type "NoSuchOp"'),
    ([('a\x1b[31m', 'NoOp')], "'a\\x1b[31m' has a name that cannot be printed"),
])
def test_graphs_that_are_not_whole(nodes, said):
  graph = graph_defs.graph_def(*(graph_defs.node(*node) for node in nodes))
  with pytest.raises(errors.InvalidGraphError) as error:
    graph_files.check_nodes(graph, 'f.pb')
  assert said in str(error.value)
  assert str(error.value).startswith('Graph f.pb is not usable: ')


def test_functions_of_the_library_are_known_op_types():
  graph = graph_defs.graph_def(graph_defs.node('a', 'mine'))
  graph.library.function.add().signature.name = 'mine'
  graph_files.check_nodes(graph, 'f.pb')


@pytest.mark.parametrize('ends', [{'feeds': ('z',)}, {'fetches': ('a', 'z')}])
def test_ends_that_are_not_there(ends):
  graph_files.check_ends(graph_defs.source(_GRAPH, fetches=('a',)), 'f.pb')
  with pytest.raises(errors.InvalidGraphError, match='"z" is to be fed or'):
    graph_files.check_ends(graph_defs.source(_GRAPH, **ends), 'f.pb')


@pytest.mark.parametrize('tensor, said', [
    ('a:2000000000', 'the number of outputs of "a" is 1; write'),
    ('a:1', 'the number of outputs of "a" is 1; write'),
    ('a:' + '9' * 5000, 'the number of outputs of "a" is 1; write'),
    ('a:-1', 'the number of outputs of "a" is 1; write'),
    ('s:2', 'the number of outputs of "s" is 2; write'),
])
def test_an_output_that_is_not_there(tensor, said):
  """Room was made for two billion outputs, one after the other."""
  graph = graph_defs.graph_def(
      graph_defs.node('a', 'Placeholder', dtype=graph_defs.FLOAT),
      graph_defs.node('s', 'Split', ('i', 'a'), T=graph_defs.FLOAT),
      graph_defs.node('b', 'Neg', ('s:1',), T=graph_defs.FLOAT),
      graph_defs.node('i', 'Placeholder', dtype={'type': 3}))
  graph.node[1].attr['num_split'].i = 2
  graph_files.check_nodes(graph, 'g.pb')
  graph.node[2].input[0] = tensor
  with pytest.raises(errors.InvalidGraphError, match=said):
    graph_files.check_nodes(graph, 'g.pb')


def test_more_outputs_than_any_node_has():
  graph = graph_defs.graph_def(graph_defs.node('a', 'Placeholder'),
                               graph_defs.node('s', 'Split', ('a', 'a')))
  graph.node[1].attr['num_split'].i = 2_000_000_000
  with pytest.raises(errors.InvalidGraphError, match='65536 are the most'):
    graph_files.check_nodes(graph, 'g.pb')


@pytest.mark.parametrize('text', [
    b'RunMetadata { cost_graph' + b' ' * 200_000,
    b'node { id: 1 compute_cost: 1 }' + b'\n' * 200_000 + b'cost_graph',
    b'# a\n' * 50_000,
])
def test_spaces_are_passed_once(tmp_path, text):
  """A pattern tried every one of them with every other."""
  with pytest.raises(errors.InvalidGraphError):
    _read(tmp_path, text)
