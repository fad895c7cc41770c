"""Writes the graphs that the pass receives, ready to train on."""

from __future__ import annotations

import collections
import pathlib
import re

from tensorflow.core.framework import graph_pb2

from gdp_grappler import files
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import captured_folders


def write(source: source_graph.SourceGraph, fingerprint: str,
          directory: str) -> pathlib.Path:
  """Writes a graph as a MetaGraphDef, unless it is already there.

  Args:
    source: With a readable name.
    fingerprint: Hex digits.
    directory: Made if it does not exist.

  Returns:
    The file, for example 'one_step_on_data_11234_0f3a9c.pb': name, number of
    ops, start of the fingerprint.

  Raises:
    GdpError: it cannot be written; no partial file is left.
  """
  path = pathlib.Path(directory) / captured_folders.file_name(
      source.name, len(source.graph_def.node), fingerprint)
  if not path.exists():
    files.write_atomically(path,
                           source.to_meta_graph().SerializeToString(),
                           make_folder=True)
  return path


def readable_name(graph_id: str, graph_def: graph_pb2.GraphDef) -> str:
  """The user's name for a graph.

  Args:
    graph_id: What the runtime calls it; also the function of those nodes that
      were not inlined from another.
    graph_def: Its nodes remember the functions they were inlined from.

  Returns:
    The Python function with the most ops, without TensorFlow's decoration:
    'one_step_on_data' for '__inference_one_step_on_data_873'. Bodies of loops
    and branches do not count. Of a large graph some ops are asked.
  """
  every = max(len(graph_def.node) // _ENOUGH, 1)
  counts = collections.Counter(
      name for node in graph_def.node[::every]
      for name in node.experimental_debug_info.original_func_names or
      (graph_id,))
  for name, _ in counts.most_common():
    match = _DECORATED.fullmatch(name)
    if match:
      return match[1]
    if name == graph_id:
      break
  return graph_id


# This many ops tell what most of a graph is, because few of its functions
# differ.
_ENOUGH = 2000
_DECORATED = re.compile(r'__(?:inference|forward|backward)_(.+?)(?:_\d+)*')
