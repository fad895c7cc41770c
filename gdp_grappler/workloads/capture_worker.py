"""The process behind `capture`: builds a workload and keeps what our pass sees.

A session that prepares a call runs Grappler, with our pass in it, but computes
nothing: no variable is initialized and no step is made. The call feeds all
placeholders and runs the training op, as a training loop would. For GPUs the
pass sees the graph before Grappler, which then rewrites it for a card.
"""

from __future__ import annotations

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from gdp_grappler import errors
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import gpu_rewrites
from gdp_grappler.plugin import library
from gdp_grappler.plugin import switch
from gdp_grappler.workloads import registry
from gdp_grappler.workloads import workload as workload_lib

tf1 = tf.compat.v1
_ITERATIONS = 2


def build(name: str, architecture: str) -> bytes:
  """The captured graph of the workload `name`, a serialized MetaGraphDef."""
  graph = capture(registry.get(name), architecture)
  return graph.to_meta_graph().SerializeToString()


def capture(workload: workload_lib.Workload,
            architecture: str = '') -> source_graph.SourceGraph:
  """The training step of a workload as the pass receives it.

  Registers with the pass, so it is for a process of its own.

  Args:
    workload: What to build.
    architecture: Of a card that it is rewritten for; '' for the CPU.

  Raises:
    InvalidGraphError: the pass did not see it.
  """
  query, step = _seen(workload, bool(architecture))
  graph_def = tf1.GraphDef.FromString(query.graph)
  if architecture:
    graph_def = gpu_rewrites.rewritten(graph_def, (step,), architecture,
                                       workload.name)
  return source_graph.SourceGraph(workload.name, graph_def, query.feeds,
                                  (step,), query.devices)


def _seen(workload: workload_lib.Workload,
          unrewritten: bool) -> tuple[library.Query, str]:
  """What the pass was shown, and the training op."""
  seen: list[library.Query] = []

  def keep(query: library.Query) -> library.Answer:
    if query.graph is None:
      return library.NeedsGraph
    seen.append(query)
    return None

  library.register(keep)
  try:
    step = _prepare(workload, unrewritten)
  finally:
    library.unregister()
  shown = [q for q in seen if step in map(name_parts.node_of, q.fetches)]
  if not shown:
    raise errors.InvalidGraphError(
        f'Grappler did not show {workload.name} to the pass. Report this.')
  return shown[-1], step


def _prepare(workload: workload_lib.Workload, unrewritten: bool) -> str:
  """Builds the training op, has it prepared and returns its name."""
  graph = tf.Graph()
  with graph.as_default():
    loss = workload.build()
    step = workload.optimizer().minimize(loss, name='train')
    options = config_pb2.CallableOptions()
    options.target.append(step.name)
    options.feed.extend(op.outputs[0].name for op in graph.get_operations()
                        if op.type == 'Placeholder')
  with tf1.Session(graph=graph, config=_config(unrewritten)) as session:
    session._make_callable_from_options(options)
  return step.name


def _config(unrewritten: bool) -> config_pb2.ConfigProto:
  """With the pass at the end of every iteration of the meta optimizer.

  What Grappler rewrites to save memory depends on how much of it is free where
  the graph is built; switched off, a workload is the same graph everywhere.
  """
  config = config_pb2.ConfigProto()
  rewriting = config.graph_options.rewrite_options
  rewriting.memory_optimization = rewriting.NO_MEM_OPT
  rewriting.meta_optimizer_timeout_ms = -1  # None: large graphs take minutes.
  rewriting.meta_optimizer_iterations = _ITERATIONS
  if unrewritten:
    rewriting.optimizers.append(switch.NAME)  # And no other.
  parameters = rewriting.custom_optimizers.add(name=switch.NAME).parameter_map
  parameters['capture'].b = True
  parameters['iterations'].i = _ITERATIONS
  return config
