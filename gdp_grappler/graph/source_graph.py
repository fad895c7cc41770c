"""A GraphDef with the caller's feeds and fetches; on disk a MetaGraphDef.

A captured graph is a serialized MetaGraphDef with five collections of our own,
so any tool that reads MetaGraphs can read it. One collection holds a digest of
the rest. After an edit of the graph, this collection has to be removed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib

from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import op_kinds

_FEEDS, _FETCHES = 'gdp_feeds', 'gdp_fetches'
_DEVICES, _NAME = 'gdp_devices', 'gdp_name'
_DIGEST = 'gdp_digest'

# Ops that output the caller's tensors, and attributes with their shapes.
_SOURCES = op_kinds.PLACEHOLDERS | op_kinds.ARGUMENTS | op_kinds.BATCHES
_SHAPES = ('shape', 'output_shapes', '_output_shapes')


@dataclasses.dataclass(frozen=True, eq=False)
class SourceGraph:
  """A graph, and how its caller uses it.

  Attributes:
    name: Name of the graph for users.
    graph_def: The nodes; never changed in place.
    feeds: Names of nodes whose value the caller gives.
    fetches: Names of nodes whose value, or execution, the caller wants.
    devices: Full names of the devices the graph may use; empty if unknown.
    fingerprint: Fingerprint by which a later run recognizes the graph; '' if no
      later run can.
    tables: Names of tables that were split, with the number of their parts.
  """

  name: str
  graph_def: graph_pb2.GraphDef
  feeds: tuple[str, ...] = ()
  fetches: tuple[str, ...] = ()
  devices: tuple[str, ...] = ()
  fingerprint: str = ''
  tables: tuple[tuple[str, int], ...] = ()

  @functools.cached_property
  def op_types(self) -> list[str]:
    """[N], types of the nodes. It is cached, as protobuf access is slow."""
    return [node.op for node in self.graph_def.node]

  def leaves_sizes_open(self) -> bool:
    """Whether inputs have dimensions that the graph does not know."""
    for node, op_type in zip(self.graph_def.node, self.op_types):
      if op_type not in _SOURCES:
        continue
      for name in _SHAPES:
        value = node.attr[name] if name in node.attr else None
        if value is not None and any(
            dim.size < 0 for shape in (value.shape, *value.list.shape)
            for dim in shape.dim):
          return True
    return False

  def to_meta_graph(self) -> meta_graph_pb2.MetaGraphDef:
    """Returns the MetaGraphDef that `from_meta_graph` reads back."""
    result = meta_graph_pb2.MetaGraphDef()
    result.graph_def.CopyFrom(self.graph_def)
    for key, values in ((_FEEDS, self.feeds), (_FETCHES, self.fetches),
                        (_DEVICES, self.devices), (_NAME, (self.name,))):
      # An empty collection means "none", a missing one "not captured by us".
      result.collection_def[key].bytes_list.value.extend(
          value.encode() for value in values)
    result.collection_def[_DIGEST].bytes_list.value.append(_digest(result))
    return result


def _digest(meta_graph: meta_graph_pb2.MetaGraphDef) -> bytes:
  """Returns a digest of nodes, functions and the other collections."""
  result = hashlib.sha256(
      meta_graph.graph_def.SerializeToString(deterministic=True))
  for key in (_FEEDS, _FETCHES, _DEVICES, _NAME):
    result.update(meta_graph.collection_def[key].SerializeToString(
        deterministic=True) if key in meta_graph.collection_def else b'')
  return result.hexdigest().encode()


def is_captured(meta_graph: meta_graph_pb2.MetaGraphDef) -> bool:
  """Whether `SourceGraph.to_meta_graph` made a MetaGraphDef."""
  return _NAME in meta_graph.collection_def


def from_meta_graph(meta_graph: meta_graph_pb2.MetaGraphDef) -> SourceGraph:
  """Reads the result of `SourceGraph.to_meta_graph`.

  Raises:
    InvalidGraphError: the digest differs, or there is not exactly one name.
  """
  if _DIGEST in meta_graph.collection_def:
    digest = meta_graph.collection_def[_DIGEST].bytes_list.value
    if list(digest) != [_digest(meta_graph)]:
      raise errors.InvalidGraphError(
          'The captured graph is damaged: its digest differs. Capture it '
          f'again, or remove the collection "{_DIGEST}" if it was changed on '
          'purpose.')

  def values(key: str) -> tuple[str, ...]:
    found = meta_graph.collection_def[key].bytes_list.value
    return tuple(value.decode(errors='replace') for value in found)

  names = values(_NAME)
  if len(names) != 1:
    raise errors.InvalidGraphError(
        f'The captured graph is damaged: it has {len(names)} names. Capture it '
        'again.')
  return SourceGraph(*names, meta_graph.graph_def, values(_FEEDS),
                     values(_FETCHES), values(_DEVICES))
