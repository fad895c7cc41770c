"""Writes a placed step for TensorBoard: graph, text, histogram and timeline.

TensorFlow alone writes the events, in the format that TensorBoard's plugins
read. TensorBoard need not be installed on this machine. The graph has a colour
for each device, and ops have their simulated times as attributes.
"""

from __future__ import annotations

import contextlib
import os
import struct
from typing import Any, Iterator, Sequence

import numpy as np
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import device_work
from gdp_grappler.reports import lanes as lanes_lib
from gdp_grappler.reports import node_inputs
from gdp_grappler.reports import tables
from gdp_grappler.reports import timeline_image


def write(folder: str | os.PathLike[str], graph: op_graph.OpGraph,
          placement: placement_lib.Placement, schedule: schedule_lib.Schedule,
          lines: Sequence[str], step: int = 0) -> None:
  """Writes the events of a placement.

  Args:
    folder: Folder that TensorBoard reads.
    graph: N ops.
    placement: Placement of these ops.
    schedule: Schedule of this placement.
    lines: Lines of the text above the table of devices.
    step: Step number of the text, the histogram and the picture.

  Raises:
    GdpError: the events cannot be written.
  """
  with plain_errors(folder, 'Free some space.'):
    writer = tf.summary.create_file_writer(os.fspath(folder))
    with writer.as_default(step=step):
      tf.summary.graph(graph_def(graph, placement, schedule))
      _write('placement/summary', 'text', [
          '\n\n'.join([
              *lines,
              tables.as_markdown(device_work.rows(placement, schedule))
          ])
      ])
      decisions('placement/devices',
                np.array(list(placement.counts().values())))
      _write_timeline(graph, placement, schedule)
    writer.close()


def decisions(name: str, counts: np.ndarray) -> None:
  """Adds a histogram of devices to the default writer.

  Args:
    name: Name of the histogram.
    counts: int [D], number of times that each device was chosen.
  """
  edges = np.arange(len(counts) + 1) - .5
  _write(name, 'histograms', np.stack([edges[:-1], edges[1:], counts], axis=1))


def graph_def(graph: op_graph.OpGraph, placement: placement_lib.Placement,
              schedule: schedule_lib.Schedule) -> tf.compat.v1.GraphDef:
  """Returns N ops with devices and simulated times, without values."""
  result = tf.compat.v1.GraphDef()
  for name, op_type, device, inputs, start_s, end_s in zip(
      graph.names, graph.op_types, placement.device_strings(), _inputs(graph),
      schedule.start_s.tolist(), schedule.end_s.tolist()):
    node = result.node.add(name=name, op=op_type, device=device, input=inputs)
    node.attr['simulated_start_ms'].f = start_s * 1e3
    node.attr['simulated_ms'].f = (end_s - start_s) * 1e3
  return result


@contextlib.contextmanager
def plain_errors(folder: str | os.PathLike[str], remedy: str) -> Iterator[None]:
  """Turns errors of TensorFlow in the context into errors of one line.

  Args:
    folder: Folder of the events.
    remedy: Advice for the user.

  Raises:
    GdpError: in place of an error of TensorFlow.
  """
  try:
    yield
  except tf.errors.OpError as error:
    reason = errors.first_line(error).rsplit('; ', 1)[-1]
    raise errors.GdpError(
        f'Cannot write TensorBoard events to {os.fspath(folder)}: {reason}. '
        f'{remedy}') from error


def _inputs(graph: op_graph.OpGraph) -> list[list[str]]:
  """Returns the inputs of each op, [N], as in a GraphDef."""
  return [[_tensor(graph.names[edge.op], edge.output) for edge in own]
          for own in node_inputs.of(graph)]


def _tensor(name: str, output: int | None) -> str:
  """Returns the input in the format of a GraphDef: 'a', 'a:1' or '^a'."""
  if output is None:
    return f'^{name}'
  return f'{name}:{output}' if output else name


def _write_timeline(graph: op_graph.OpGraph, placement: placement_lib.Placement,
                    schedule: schedule_lib.Schedule) -> None:
  drawn = timeline_image.png(
      lanes_lib.lanes(graph, placement, schedule, timeline_image.COLUMNS),
      schedule.step_time_s)
  # The header of a PNG has the size of the picture.
  width, height = struct.unpack('>II', drawn[16:24])
  _write('placement/timeline', 'images', [str(width), str(height), drawn])


def _write(name: str, plugin: str, value: Any) -> None:
  """Adds a value for a plugin of TensorBoard to the default writer."""
  metadata = tf.compat.v1.SummaryMetadata()
  metadata.plugin_data.plugin_name = plugin
  tf.summary.write(name, value, metadata=metadata)
