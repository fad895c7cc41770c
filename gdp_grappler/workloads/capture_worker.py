"""The process behind `capture`: builds a workload and keeps the pass's graph.

A session that prepares a call runs Grappler, with our pass in it, but computes
nothing: no variable is initialized and no step runs. The call feeds all
placeholders and runs the training op, like a training loop. For GPUs, the pass
gets the graph before Grappler, and `gpu_rewrites` then runs Grappler for a
card.
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
_ITERATIONS = 2  # Rounds of Grappler's optimizers, its default.


def build(name: str, architecture: str) -> bytes:
  """Returns the captured graph of a workload, as a serialized MetaGraphDef."""
  graph = capture(registry.get(name), architecture)
  return graph.to_meta_graph().SerializeToString()


def capture(workload: workload_lib.Workload,
            architecture: str = '') -> source_graph.SourceGraph:
  """Returns a workload's training step as the pass gets it.

  The function registers a callback for the pass, so it needs its own process.

  Args:
    workload: The workload to build.
    architecture: Architecture of a card to rewrite the graph for; '' for CPUs.

  Raises:
    InvalidGraphError: the pass did not get the graph.
  """
  query, step = _captured(workload, bool(architecture))
  graph_def = tf1.GraphDef.FromString(query.graph)
  if architecture:
    graph_def = gpu_rewrites.rewritten(graph_def, (step,), architecture,
                                       workload.name)
  return source_graph.SourceGraph(workload.name, graph_def, query.feeds,
                                  (step,), query.devices)


def _captured(workload: workload_lib.Workload,
              unrewritten: bool) -> tuple[library.Query, str]:
  """Returns the graph that the pass got, and the training op."""
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
  """Builds the training op, prepares a call of it, and returns its name."""
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
  """Returns a config with the pass at the end of each round of optimizers.

  Grappler's rewrites that save memory depend on the free memory of the machine.
  They are off, so that a workload is the same graph everywhere.
  """
  config = config_pb2.ConfigProto()
  rewriting = config.graph_options.rewrite_options
  rewriting.memory_optimization = rewriting.NO_MEM_OPT
  rewriting.meta_optimizer_timeout_ms = -1  # Large graphs take minutes.
  rewriting.meta_optimizer_iterations = _ITERATIONS
  if unrewritten:
    rewriting.optimizers.append(switch.NAME)  # The only optimizer.
  parameters = rewriting.custom_optimizers.add(name=switch.NAME).parameter_map
  parameters['capture'].b = True
  parameters['iterations'].i = _ITERATIONS
  return config
