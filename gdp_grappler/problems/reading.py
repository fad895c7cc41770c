"""Turns a request into a step (graph, cluster, costs), or into its graph alone.

A name that is both a workload's and a file's means the workload. The exception
is a file with its own costs: such a file is read without TensorFlow, and the
list of workloads needs TensorFlow.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Callable, Sequence, TYPE_CHECKING

from absl import logging

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler import spelling
from gdp_grappler import suggestions
from gdp_grappler.cluster import architectures
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation.costs import profiled_costs
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import step as step_lib
from gdp_grappler.problems import request as request_lib
from gdp_grappler.problems import tables

if TYPE_CHECKING:
  # These modules import TensorFlow, which a graph with its own costs does not
  # need.
  from gdp_grappler.graph import source_graph
  from gdp_grappler.workloads import workload as workload_lib

Tell = Callable[[str], None]
# From the devices that the graph may use, () if unknown, to the cluster.
Where = Callable[[Sequence[str]], cluster_lib.Cluster]
_LOCAL = 'local'


def read_task(task: str, tell: Tell = logging.info,
              option: str = '') -> step_lib.Step:
  """Reads a graph and a cluster that are given in one word.

  Args:
    task: 'GRAPH@CLUSTER'.
    tell: Function that is called with a line for each assumption.
    option: Start of error messages, such as the option that has the task.

  Raises:
    GdpError: the task names no cluster, or a file or a name cannot be used.
  """
  graph, cluster = _parts(task, option)
  progress.doing(f'reading {graph}')
  return read(request_lib.Request(graph),
              lambda devices: resolve.resolve(cluster, devices), tell)


def check_task(task: str) -> None:
  """Raises an error if the graph or the cluster of a task does not exist.

  A program that reads several tasks checks all of them first.

  Args:
    task: 'GRAPH@CLUSTER'.

  Raises:
    GdpError: no cluster is named, or the graph or the cluster does not exist.
  """
  from gdp_grappler.workloads import registry
  graph, cluster = _parts(task)
  resolve.resolve(cluster, ())
  request = request_lib.Request(graph)
  if request.given is None and graph not in registry.names():
    _check_origin(request)


def _parts(task: str, option: str = '') -> tuple[str, str]:
  """Returns the graph and the cluster of a task."""
  graph, at, cluster = task.rpartition('@')
  if not at or not graph:
    raise errors.GdpError(
        f'{option}"{task}" names no cluster. Give for example '
        'rnnlm-2@2xP100.')
  return graph, cluster


def read(
    request: request_lib.Request, where: Where, tell: Tell = logging.info,
    layers: plan_lib.Layers = ()) -> step_lib.Step:
  """Reads the graph of a request, its profile and its human expert.

  Args:
    request: The arguments that the user typed.
    where: Function that returns the cluster, such as `resolve.resolve` of a
      text. It is called before the graph is read, so that an unknown name is
      reported at once. It is called again with the devices of the graph if the
      cluster is 'local'.
    tell: Function that is called with a line for each assumption.
    layers: Map of layers that will place the graph; see `tables.split`.

  Raises:
    GdpError: a file or a name cannot be used.
  """
  cluster = where(())
  if request.given is not None:
    if request.signature or request.shapes:
      raise errors.GdpError(
          f'{request.graph} is a graph of costs. {_of_saved_models()}')
    if request.profile:
      raise errors.GdpError(
          f'{request.graph} brings the costs of its ops, and '
          f'{spelling.argument("profile", request.profile)} would replace '
          f'them. Leave out {spelling.argument("profile")}.')
    if not isinstance(request.split_tables, str):
      raise errors.GdpError(
          f'{request.graph} is a graph of costs, which has no tables to split. '
          f'Leave out {spelling.argument("split_tables")}.')
    graph, costs = request.given
    if request.pins == assumptions.PINS_IGNORED:
      graph = graph.replace(pins=[''] * graph.num_ops,
                            user_pins=[False] * graph.num_ops)
    step = step_lib.Step(graph, cluster, None, costs)
    return step.with_rounding_allowed() if request.may_round else step
  architecture = architectures.of(cluster)
  found = source(request, tell, architecture)
  step = of_source(found, request, cluster, where, tell)
  split = tables.split(step, request.split_tables,
                       _tracing(request, architecture), tell, layers)
  if split is not None:
    step = of_source(split, request, cluster, where, progress.silent)
  tell_pins_and_profile(step, request, tell)
  return dataclasses.replace(step, expert=_expert(request))


def of_source(found: source_graph.SourceGraph, request: request_lib.Request,
              cluster: cluster_lib.Cluster, where: Where,
              tell: Tell = logging.info) -> step_lib.Step:
  """Returns the step of a graph that is in memory, with its profile.

  Args:
    found: The graph.
    request: The batch size, trip count, pins and profile.
    cluster: The result of `where` without devices.
    where: Function that returns the cluster; see `read`.
    tell: Function that is called with a line for each assumption.

  Raises:
    GdpError: the graph or the profile cannot be used.
  """
  if cluster.name == _LOCAL and found.devices:
    cluster = where(found.devices)
  step = step_lib.of_source(prepared(found, request, cluster, tell), cluster,
                            batch_size=request.batch_size,
                            trip_count=request.trip_count,
                            may_round=request.may_round, tell=tell)
  if not request.profile:
    return step
  return dataclasses.replace(
      step, cost_model=profiled_costs.from_file(request.profile, step.graph))


def tell_pins_and_profile(step: step_lib.Step, request: request_lib.Request,
                          tell: Tell) -> None:
  """Tells the user which pins and which costs a step has.

  Args:
    step: Result of `of_source`, with the tables that are placed.
    request: The arguments that the user typed.
    tell: Function that is called with at most two lines.
  """
  from gdp_grappler.problems import asking
  asking.tell_kept(step.graph, tell)
  if isinstance(step.cost_model, profiled_costs.ProfiledCostModel):
    tell(_coverage(request.profile, step.cost_model, step.graph, step.cluster))


def prepared(found: source_graph.SourceGraph, request: request_lib.Request,
             cluster: cluster_lib.Cluster,
             tell: Tell = logging.info) -> source_graph.SourceGraph:
  """Returns a graph as it is placed on a cluster.

  If the cluster has GPUs, fused ops that only CPUs have are replaced by the ops
  from which Grappler made them. Ops ask only for devices of the cluster, or for
  none if the request ignores pins.

  Args:
    found: The graph.
    request: The arguments that the user typed.
    cluster: The cluster that the graph is placed on.
    tell: Function that is called with a line for each change, and for each
      change that was impossible.
  """
  from gdp_grappler.problems import asking
  result = asking.kept(found, request.pins, cluster, tell)
  if not architectures.of(cluster):
    return result
  from gdp_grappler.graph.sources import restoring
  return restoring.restored(result, tell)


def source(request: request_lib.Request, tell: Tell = logging.info,
           architecture: str = '') -> source_graph.SourceGraph:
  """Returns the graph that a request names.

  Args:
    request: The arguments that the user typed.
    tell: Function that is called with a line for each assumption.
    architecture: Architecture of the cluster's cards (see `architectures.of`).
      Graphs are traced or built for such cards.

  Raises:
    GdpError: there is no such graph, or it cannot be used.
  """
  from gdp_grappler.graph.sources import sources
  from gdp_grappler.workloads import registry
  if request.graph in registry.names():
    if request.signature or request.shapes:
      raise errors.InvalidGraphError(
          f'{request.graph} is a workload. {_of_saved_models()}')
    # The devices are those of the process that built the workload.
    built = registry.source(request.graph, tell, architecture)
    return dataclasses.replace(built, devices=())
  _check_origin(request)
  return sources.read(request.origin, batch_size=request.batch_size,
                      signature=request.signature or None,
                      shapes=request.shapes, architecture=architecture,
                      tell=tell)


def _check_origin(request: request_lib.Request) -> None:
  """Raises an error if a graph is no workload and does not exist."""
  from gdp_grappler.workloads import registry
  if not (request.origin.names_function or request.origin.exists):
    near = suggestions.did_you_mean(request.graph, registry.names())
    raise errors.InvalidGraphError(request.origin.absent(near))


def whole(request: request_lib.Request, step: step_lib.Step) -> step_lib.Step:
  """Returns a step together with ops that no step runs, such as initializers.

  Only files of GraphDefs and MetaGraphs have such ops. For other graphs the
  result is the given step.

  Args:
    request: The arguments that the user typed. The graph has no costs of its
      own.
    step: Result of `read` for this request.

  Raises:
    GdpError: the graph cannot be used.
  """
  from gdp_grappler.graph.sources import sources
  if workload(request) is not None or not request.origin.is_file:
    return step
  unpruned = sources.unpruned(request.origin)
  if unpruned is None:
    return step
  return step_lib.of_source(
      tables.like(prepared(unpruned, request, step.cluster, progress.silent),
                  step), step.cluster, batch_size=request.batch_size,
      trip_count=request.trip_count, may_round=request.may_round)


def _tracing(request: request_lib.Request,
             architecture: str) -> tables.Trace | None:
  """Returns a function that traces a graph with split tables.

  Returns None if the graph is not traced, but read.
  """
  from gdp_grappler.graph.sources import sources
  if workload(request) is not None or not sources.is_traced(request.origin):
    return None
  return lambda layers: sources.read(request.origin, batch_size=request.
                                     batch_size, architecture=architecture, tell
                                     =progress.silent, tables=layers)


def _of_saved_models() -> str:
  """Returns the message that only SavedModels have signatures."""
  return (f'{spelling.argument("signature")} and {spelling.argument("shape")} '
          'are for SavedModels. Leave them out.')


def workload(request: request_lib.Request) -> workload_lib.Workload | None:
  """Returns the workload that a request names; None for other graphs."""
  if request.given is not None:
    return None
  from gdp_grappler.workloads import registry
  known = request.graph in registry.names()
  return registry.get(request.graph) if known else None


def measurable(request: request_lib.Request,
               step: step_lib.Step) -> source_graph.SourceGraph:
  """Returns the graph of a step that is going to be measured, not simulated.

  Raises:
    GdpError: the graph has no TensorFlow ops to run, or the request has a
      profile, which measured steps would ignore.
  """
  if step.source is None:
    raise errors.GdpError(
        f'{request.graph} has costs but no TensorFlow ops, so its steps cannot '
        'be measured. Use simulated steps.')
  request_lib.refuse_profile(request.profile)
  return step.source


def _expert(request: request_lib.Request) -> step_lib.Expert | None:
  from gdp_grappler.workloads import registry
  if workload(request) is None:
    return None
  return functools.partial(registry.expert_devices, request.graph)


def _coverage(path: str, costs: profiled_costs.ProfiledCostModel,
              graph: op_graph.OpGraph, cluster: cluster_lib.Cluster) -> str:
  """Returns a text about which devices and ops of a step a profile has."""
  measured: list[str] = []
  lacking: list[str] = []
  for device, label in zip(cluster.devices, cluster.device_labels):
    known = costs.profile.of(device.name, device.type) is not None
    (measured if known else lacking).append(label)
  parts = []
  if measured:
    parts.append(f'{", ".join(measured)}: {costs.coverage(graph)}')
  if lacking:
    parts.append(f'{", ".join(lacking)}: all ops on the roofline, as no such '
                 'device was profiled')
  return f'Profile {path} of "{costs.profile.graph}": ' + '; '.join(parts) + '.'
