"""The doctor's test in a new process: does the pass really place ops?

The process runs like a user's program: it has TensorFlow, two CPU devices, and
a function whose ops must be on both. GPUs are hidden, because ops that round on
a GPU would not leave it.
"""

from __future__ import annotations

from typing import Any

from gdp_grappler.plugin import splitting
from gdp_grappler.processes import messages


def main(split: int | str | None) -> None:
  """Sends the result of `report` to the parent process.

  Args:
    split: Number of parts of each card; see `splitting.checked`.
  """
  answers = messages.answers()
  messages.end_with_parent()
  messages.send(answers, report(split))


def report(split: int | str | None = None) -> dict[str, Any]:
  """Returns what the process has, and where the ops of a function ran.

  Args:
    split: Number of parts of each card; see `splitting.checked`.

  Returns:
    'logical' and 'gpus': names of devices. 'hook': whether the hook is there.
    'used', only with the hook: the devices that ran the function's matrix
    products. 'cut', only if cards are to be split: the line for the user, and
    the number of parts of each card.
  """
  import tensorflow as tf
  from tensorflow.python.eager import context
  gpus = [d.name for d in tf.config.list_physical_devices('GPU')]
  planned = None
  if split not in (None, 1):
    planned = splitting.plan(context.context(), split)
  tf.config.set_visible_devices([], 'GPU')
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * 2)
  result = {
      'logical': [d.name for d in tf.config.list_logical_devices()],
      'gpus': gpus, 'hook': hasattr(context.Context, '_gdp_hook')
  }
  if planned is not None:
    result['cut'] = planned.line, planned.parts
  if result['hook']:
    tf.config.optimizer.set_experimental_options({
        'gdp_placement': {'placer': 'random', 'keep_best': False, 'min_ops': 4}
    })
    result['used'] = _devices_used(tf, context)
  return result


def _devices_used(tf: Any, context: Any) -> list[str]:

  @tf.function
  def work(x: Any) -> Any:
    for _ in range(12):
      x = tf.tanh(tf.matmul(x, x))
    return x

  context.enable_graph_collection()
  work(tf.ones((8, 8)))
  tf.identity(1.)  # Graphs are handed over when a later op succeeds.
  graphs = context.export_run_metadata().function_graphs
  return sorted({
      node.device for graph in graphs for part in graph.partition_graphs
      for node in part.node if 'MatMul' in node.op
  })
