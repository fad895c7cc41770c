"""Writes the graphs that the pass receives to files, for example to train."""

from __future__ import annotations

import collections
import dataclasses
import os
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
    source: The graph, with a readable name.
    fingerprint: Fingerprint of the graph, in hex digits.
    directory: Folder of the file. It is made if it does not exist.
    call: Call in which the graph runs. A step of Keras gets the call's name.

  Returns:
    The file, for example 'fit_of_sequential_11234_0f3a9c.pb': name, number
    of ops, start of the fingerprint.

  Raises:
    GdpError: the file cannot be written. No partial file is left.
  """
  title = current_call.title(source.name, call)
  if title != source.name:
    source = dataclasses.replace(source, name=captured_folders.plain(title))
  path = pathlib.Path(directory) / captured_folders.file_name(
      source.name, len(source.graph_def.node), fingerprint)
  # `path.exists` raises an error if the folder cannot be searched.
  if not os.path.exists(path):
    files.write_atomically(path,
                           source.to_meta_graph().SerializeToString(),
                           make_folder=True)
  return path


def readable_name(graph_id: str, graph_def: graph_pb2.GraphDef) -> str:
  """Returns the name of the function that a graph was made of.

  Args:
    graph_id: The runtime's name of the graph.
    graph_def: The graph. The debug information of a node names the function
      from which the node was inlined.

  Returns:
    The name of the function that the program called, without TensorFlow's
    prefix and number: 'train' for '__inference_train_873'. For the graph of a
    session, the name of the function with the most ops, or `graph_id`. Only a
    sample of the ops of a large graph counts.
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


# Ops in the sample that names the graph of a session. The sample is large
# enough, because the ops of a graph come from few functions.
_ENOUGH = 2000
