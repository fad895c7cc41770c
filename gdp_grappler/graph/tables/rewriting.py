"""Splits variables of a GraphDef, and ops that compute on them row by row.

A variable becomes K variables, each with a part of its rows (or columns). An op
that computes element by element becomes K ops. A product with a part is a part
of the product, or a summand. A lookup reads from each part the rows that the
part has. An update changes each part by its part of the gradient, or by the
gradient's rows that the part has. All other ops get the parts joined, under the
tensor's old name. So the graph computes the same as before for any use of the
variable. But a use by an op without a rule saves no memory.

As in GSPMD (Xu et al., 2021), the user splits one tensor, and a rule per op
propagates the split. Unlike in GSPMD, each part is an op of its own, which can
be placed.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping, Sequence

from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2

from gdp_grappler import errors
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.tables import handles as handles_lib
from gdp_grappler.graph.tables import lookups
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import updates
from gdp_grappler.graph.tables import values
from gdp_grappler.graph.tables import view as view_lib


def in_parts(source: source_graph.SourceGraph, tables: Mapping[str,
                                                               Sequence[int]],
             axis: int = 0) -> source_graph.SourceGraph:
  """Returns a graph with variables in parts.

  Args:
    source: The graph.
    tables: Sizes of the parts of each variable, by node, with slots.
    axis: Axis along which the variables are cut.

  Raises:
    InvalidGraphError: an op needs the whole handle of a variable.
  """
  view = view_lib.View(source)
  wanted = {
      name: handles_lib.split(view.nodes[name], tuple(sizes), axis)
      for name, sizes in tables.items()
  }
  # The first run finds the tensors that updates need in parts, such as
  # gradients. In the second run, earlier readers of these tensors use the parts
  # as well.
  first = _written(view, wanted, {})
  rewriter = _written(view, wanted, first.computed)
  graph_def = rewriter.finish(source)
  feeds = [
      part for feed in source.feeds for part in (
          rewriter.handles[feed].names if feed in rewriter.handles else (feed,))
  ]
  return dataclasses.replace(source, graph_def=graph_def, feeds=tuple(feeds))


def _written(view: view_lib.View, wanted: dict[str, parts.Split],
             in_parts_anyway: Mapping[str, parts.Split]) -> _Rewriter:
  result = _Rewriter(view, wanted, in_parts_anyway)
  for node in view.in_order():
    result.take(node)
  return result


class _Rewriter:
  """Takes the nodes of a graph in order and writes another graph."""

  def __init__(self, view: view_lib.View, wanted: dict[str, parts.Split],
               in_parts_anyway: Mapping[str, parts.Split]) -> None:
    self.view = view
    self._anyway = in_parts_anyway
    self.writer = parts.Writer(view.nodes)
    self.handles = {
        name: handles_lib.write(view.nodes[name], split, self.writer, view)
        for name, split in wanted.items()
    }
    self._values = values.Values(view, self.writer, self.handles)
    # Removed nodes, with the nodes that replace them.
    self._replaced: dict[str, tuple[str, ...]] = {
        name: split.names for name, split in self.handles.items()
    }

  @property
  def computed(self) -> Mapping[str, parts.Split]:
    """Tensors that were computed in parts because updates need their parts."""
    return self._values.computed

  def take(self, node: node_def_pb2.NodeDef) -> None:
    """Writes a node, or nodes that replace it."""
    if node.name in self.handles:
      return
    taken = view_lib.inputs(node)
    of_handles = [t for t in taken if t in self.handles]
    of_values = [t for t in taken if t in self._values.split]
    if node.name in self._anyway and self._values.make(node,
                                                       self._anyway[node.name]):
      return
    if not of_handles and not of_values:
      self.writer.keep(node)
    elif not (self._handle_is_used(node, of_handles) or
              self._value_is_used(node, taken)):
      self._is_whole(node, taken)

  def _handle_is_used(self, node: node_def_pb2.NodeDef,
                      of_handles: Sequence[str]) -> bool:
    if not of_handles:
      return False
    split = self.handles[of_handles[0]]
    if node.op in handles_lib.READS:
      self._values.read(node, split)
      return True
    if lookups.write(node, split, self.view, self.writer):
      return True
    done = (updates.write(node, self.handles, self._values) or
            handles_lib.ask(node, split, self.writer))
    if done:
      self._replaced[node.name] = done
    elif self.view.dtype(of_handles[0]) == parts.RESOURCE:
      raise errors.InvalidGraphError(
          f'The variable "{of_handles[0]}" cannot be split: op "{node.name}" '
          f'({node.op}) takes the whole variable. Leave the variable out of '
          'split_tables.')
    return bool(done)

  def _value_is_used(self, node: node_def_pb2.NodeDef,
                     taken: Sequence[str]) -> bool:
    first = self._values.split.get(taken[0]) if taken else None
    if first is not None and lookups.write(node, first, self.view, self.writer):
      return True
    return self._values.hand_on(node) or self._values.sum_up(node)

  def _is_whole(self, node: node_def_pb2.NodeDef, taken: Sequence[str]) -> None:
    self.writer.keep(node)
    for tensor in taken:
      self._values.want_whole(tensor)

  def finish(self, source: source_graph.SourceGraph) -> graph_pb2.GraphDef:
    """Returns the graph, with all names that are still read or fetched."""
    fetches = set(source.fetches)
    for name in fetches:
      self._values.want_whole(name)
    self._values.join_wanted()
    self._replaced.update(self._values.replaced())
    written = {node.name for node in self.writer.nodes}
    asked = fetches | {
        control[1:] for node in self.writer.nodes
        for control in view_lib.controls(node)
    }
    for name in sorted((asked & self._replaced.keys()) - written):
      self.writer.add(
          'NoOp', name, (),
          [f'^{part.partition(":")[0]}' for part in self._replaced[name]],
          exactly=True)
    result = self.writer.graph_def(source.graph_def)
    self._drop_unread(result, fetches)
    _drop_stale_colocation(result)
    return result

  def _drop_unread(self, graph_def: graph_pb2.GraphDef,
                   fetches: set[str]) -> None:
    """Removes nodes that were read before and are no longer read."""
    before = {
        name_parts.node_of(item) for node in self.view.nodes.values()
        for item in node.input
    }
    while True:
      now = {
          name_parts.node_of(item) for node in graph_def.node
          for item in node.input
      }
      kept = [
          node for node in graph_def.node
          if node.name in now or node.name in fetches or
          (node.name in self.view.nodes and node.name not in before) or
          node.name in self._values.sinks or node.name in self._made()
      ]
      if len(kept) == len(graph_def.node):
        return
      nodes = [
          node_def_pb2.NodeDef.FromString(n.SerializeToString()) for n in kept
      ]
      del graph_def.node[:]
      graph_def.node.extend(nodes)

  def _made(self) -> set[str]:
    """Returns parts of variables and of updates, which need no reader."""
    return {name for names in self._replaced.values() for name in names}


def _drop_stale_colocation(graph_def: graph_pb2.GraphDef) -> None:
  """Removes co-location constraints with nodes that were removed."""
  names = {node.name for node in graph_def.node}
  for node in graph_def.node:
    if '_class' not in node.attr:
      continue
    kept = [
        item for item in node.attr['_class'].list.s
        if not item.startswith(b'loc:@') or item[5:].decode() in names
    ]
    del node.attr['_class'].list.s[:]
    node.attr['_class'].list.s.extend(kept)
    if not kept:
      del node.attr['_class']
