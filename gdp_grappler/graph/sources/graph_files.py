"""Graphs in files: finds the kind of a file, and checks that it is whole."""

from __future__ import annotations

import codecs
import dataclasses
import functools
import struct
from typing import Any, Callable
import zipfile

from google.protobuf import message as message_lib
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import text_protos
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import node_validation
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import origin as origin_lib

_HEAD_BYTES = 4096  # Enough to recognize a text.
# Limit of a node's outputs.
_MOST_OUTPUTS = 1 << 16
# Limit of the digits of an output's number.
_MOST_DIGITS = 9
# Limit of the unpacked size of a Keras archive: so many times the size of the
# archive, plus the limit of a text.
_MOST_UNPACKED = 2


@dataclasses.dataclass(frozen=True, eq=False)
class Content:
  """The content of a file.

  Attributes:
    kind: 'captured', 'meta_graph', 'saved_model' or 'keras'.
    message: A MetaGraphDef for 'captured' and 'meta_graph'. A GraphDef is
      wrapped in one. A SavedModel for 'saved_model'; None for 'keras'.
  """

  kind: str
  message: Any = None


def read(origin: origin_lib.Origin) -> Content:
  """Finds the kind of a file, and parses it.

  Raises:
    InvalidGraphError: the file is missing, unreadable, or of no known kind.
  """
  path = origin.text
  if origin.is_archive:
    _check_archive(origin)
    return Content('keras')
  data = origin.data
  if not data:
    raise errors.InvalidGraphError(
        f'Graph {path} is empty (0 bytes). Write it again.')
  content = _classify(lambda kind: _parse_binary(kind, data)) or _classify(
      lambda kind: _parse_text(kind, data))
  if content is None:
    raise errors.InvalidGraphError(_explain(path, data))
  return content


def check_nodes(graph_def: graph_pb2.GraphDef, path: str) -> None:
  """Checks that a graph is complete and known to this TensorFlow.

  Raises:
    InvalidGraphError: the graph has no nodes, a name twice or one that cannot
      be printed, an input or an output that does not exist, an op that is not
      registered, or a node that does not agree with its op's definition.
  """
  names = [node.name for node in graph_def.node]
  known = set(names)
  if not names:
    raise _unusable(path, 'it has no nodes', 'give a graph with some')
  odd = next((name for name in names if not name.isprintable()), None)
  if odd is not None:
    raise _unusable(path, f'node {odd!r} has a name that cannot be printed',
                    'rename it')
  if len(known) < len(names):
    first: dict[str, int] = {}
    twice = next(n for i, n in enumerate(names) if first.setdefault(n, i) < i)
    raise _unusable(path, f'node "{twice}" appears twice', 'rename one')
  for node in graph_def.node:
    for tensor in node.input:
      if name_parts.node_of(tensor) not in known:
        raise _unusable(
            path, f'"{node.name}" reads "{tensor}", which is not in the graph',
            'the file may be cut off; write it again')
  _check_op_types(graph_def, path)
  _check_outputs(graph_def, path)
  why = node_validation.problem(graph_def)
  if why:
    raise _unusable(path, why, 'write it again')


def check_ends(source: source_graph.SourceGraph, path: str) -> None:
  """Checks that the feeds and fetches of a graph exist.

  Raises:
    InvalidGraphError: one of them does not exist.
  """
  known = {node.name for node in source.graph_def.node}
  for name in source.fetches + source.feeds:
    if name not in known:
      raise _unusable(
          path, f'"{name}" is to be fed or fetched but is not in '
          'the graph', 'capture or export it again')


def _check_op_types(graph_def: graph_pb2.GraphDef, path: str) -> None:
  functions = {f.signature.name for f in graph_def.library.function}
  for op in sorted({node.op for node in graph_def.node} - functions):
    if op_def_registry.get(op) is None:
      raise _unusable(
          path, f'TensorFlow does not know its op type "{op}"',
          'load the library that registers it first '
          '(tf.load_op_library)')


def _check_outputs(graph_def: graph_pb2.GraphDef, path: str) -> None:
  """Checks numbers of outputs, because a huge number would take huge memory."""
  results = {
      f.signature.name: len(f.signature.output_arg)
      for f in graph_def.library.function
  }
  counts = {
      node.name: results.get(node.op) or _num_outputs(node)
      for node in graph_def.node
  }
  for name, count in counts.items():
    if count > _MOST_OUTPUTS:
      raise _unusable(path, f'"{name}" has {count} outputs',
                      f'{_MOST_OUTPUTS} are the most')
  for node in graph_def.node:
    for tensor in node.input:
      _, colon, index = tensor.partition(':')
      source = name_parts.node_of(tensor)
      if colon and (not index.isdecimal() or len(index) > _MOST_DIGITS or
                    int(index) >= counts[source]):
        raise _unusable(
            path, f'"{node.name}" reads "{tensor}", but the number of outputs '
            f'of "{source}" is {counts[source]}', 'write it again')


def _num_outputs(node: node_def_pb2.NodeDef) -> int:
  """Counts a node's outputs by the attributes that contain their numbers."""
  count = 0
  for number, types in _output_attributes(node.op):
    if number:
      count += node.attr[number].i if number in node.attr else 1
    elif types:
      count += len(node.attr[types].list.type) if types in node.attr else 1
    else:
      count += 1
  return count


@functools.cache
def _output_attributes(op: str) -> tuple[tuple[str, str], ...]:
  """Returns, for each output of an op, attributes of number and types."""
  definition = op_def_registry.get(op)
  return () if definition is None else tuple(
      (arg.number_attr, arg.type_list_attr) for arg in definition.output_arg)


def _classify(
    parse: Callable[[type[message_lib.Message]], Any]) -> Content | None:
  """Returns the first kind whose proto parses as a graph with nodes."""
  saved_model = parse(saved_model_pb2.SavedModel)
  if saved_model and any(
      map(_looks_whole, (m.graph_def for m in saved_model.meta_graphs))):
    return Content('saved_model', saved_model)
  meta_graph = parse(meta_graph_pb2.MetaGraphDef)
  if meta_graph and _looks_whole(meta_graph.graph_def):
    captured = source_graph.is_captured(meta_graph)
    return Content('captured' if captured else 'meta_graph', meta_graph)
  graph_def = parse(graph_pb2.GraphDef)
  if graph_def and _looks_whole(graph_def):
    return Content('meta_graph',
                   meta_graph_pb2.MetaGraphDef(graph_def=graph_def))
  return None


def _looks_whole(graph_def: graph_pb2.GraphDef) -> bool:
  """Whether all nodes have an op, which is rare in bytes of another proto."""
  return bool(graph_def.node) and all(
      node.name and node.op.replace('>', '').isidentifier()
      for node in graph_def.node)


def _parse_binary(kind: type[message_lib.Message],
                  data: bytes) -> message_lib.Message | None:
  try:
    return kind.FromString(data)
  except message_lib.DecodeError:
    return None


def _parse_text(kind: type[message_lib.Message],
                data: bytes) -> message_lib.Message | None:
  if len(data) > files.MOST_TEXT_BYTES or b'\0' in data:
    return None
  try:
    return text_protos.parse(data.decode(), kind())
  except ValueError:
    return None


def _check_archive(origin: origin_lib.Origin) -> None:
  """Checks that an archive has a Keras model, and unpacks to a fair size."""
  if origin.head == origin_lib.HDF5:
    return
  try:
    with zipfile.ZipFile(origin.path) as archive:
      sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
      total = sum(entry.file_size for entry in archive.infolist())
    size = origin.path.stat().st_size
  except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError,
          ValueError, struct.error):
    sizes = {}
  if 'config.json' not in sizes:
    raise errors.InvalidGraphError(
        f'{origin.text} is a damaged archive or one without a Keras model. '
        'Save the model again with model.save("NAME.keras").')
  # Keras does not compress weights, and its texts are small.
  texts = sum(n for name, n in sizes.items() if name.endswith('.json'))
  if (total > _MOST_UNPACKED * size + files.MOST_TEXT_BYTES or
      texts > files.MOST_TEXT_BYTES):
    raise _unusable(origin.text, f'its {size} bytes unpack to {total}',
                    'save the model again with model.save("NAME.keras")')


def _explain(path: str, data: bytes) -> str:
  """Returns the error message for bytes that are no graph."""
  for kind in (graph_pb2.GraphDef, meta_graph_pb2.MetaGraphDef):
    message = _parse_binary(kind, data)
    if message is not None and not message.ByteSize() - len(data):
      graph_def = getattr(message, 'graph_def', message)
      if not graph_def.node and message.ListFields():
        return f'Graph {path} has no nodes. Give a graph with some.'
  try:
    # The head may end in the middle of a character.
    head = codecs.getincrementaldecoder('utf-8')().decode(data[:_HEAD_BYTES])
    first = head.strip().splitlines()[0][:60]
    return (f'{path} is text but no GraphDef or MetaGraph (it begins with '
            f'"{first}"). Give {origin_lib.KINDS}.')
  except (UnicodeDecodeError, IndexError):
    return (f'{path} is not a graph, or is cut off or damaged. Write it '
            f'again, or give {origin_lib.KINDS}.')


def _unusable(path: str, why: str, remedy: str) -> errors.InvalidGraphError:
  return errors.InvalidGraphError(
      f'Graph {path} is not usable: {why}; {remedy}.')
