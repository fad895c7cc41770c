"""Writes the graphs that the pass receives, ready to train on."""

from __future__ import annotations

import collections
import dataclasses
import pathlib

from tensorflow.core.framework import graph_pb2

from gdp_grappler import files
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import captured_folders
from gdp_grappler.plugin import current_call


def write(source: source_graph.SourceGraph, fingerprint: str, directory: str,
          call: current_call.RunningCall | None = None) -> pathlib.Path:
  """Writes a graph as a MetaGraphDef, unless it is already there.

  Args:
    source: With a readable name.
    fingerprint: Hex digits.
    directory: Made if it does not exist.
    call: In which the graph runs, which gives steps of Keras their name.

  Returns:
    The file, for example 'fit_of_sequential_11234_0f3a9c.pb': name, number
    of ops, start of the fingerprint.

  Raises:
    GdpError: it cannot be written; no partial file is left.
  """
  title = current_call.title(source.name, call)
  if title != source.name:
    source = dataclasses.replace(source, name=captured_folders.plain(title))
  path = pathlib.Path(directory) / captured_folders.file_name(
      source.name, len(source.graph_def.node), fingerprint)
  if not path.exists():
    files.write_atomically(path,
                           source.to_meta_graph().SerializeToString(),
                           make_folder=True)
  return path


def readable_name(graph_id: str, graph_def: graph_pb2.GraphDef) -> str:
  """The name of the function that a graph was made of.

  Args:
    graph_id: What the runtime calls it.
    graph_def: Its nodes remember the functions they were inlined from.

  Returns:
    Without TensorFlow's decoration the function that the program has called:
    'train' for '__inference_train_873'. The graph of a session has no such
    function: it has the name of the function with the most ops, or its own. Of
    a large graph some ops are asked.
  """
  called = current_call.undecorated(graph_id)
  if called != graph_id:
    return called
  every = max(len(graph_def.node) // _ENOUGH, 1)
  counts = collections.Counter(
      name for node in graph_def.node[::every]
      for name in node.experimental_debug_info.original_func_names or
      (graph_id,))
  for name, _ in counts.most_common():
    plain = current_call.undecorated(name)
    if plain != name:
      return plain
    if name == graph_id:
      break
  return graph_id


# This many ops tell what most of a graph is, because few of its functions
# differ.
_ENOUGH = 2000
