"""Finds workloads by name."""

from __future__ import annotations

import functools
import importlib
import types
from typing import Callable

from absl import logging
import numpy as np

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.workloads import capture
from gdp_grappler.workloads import stages
from gdp_grappler.workloads import workload as workload_lib

# Modules of this package, each with `WORKLOADS`. They are imported when a
# workload is needed, because they import TensorFlow.
_FAMILIES = ('rnnlm', 'gnmt', 'transformer_xl', 'inception', 'amoebanet',
             'wavenet', 'resnet', 'nmt')
# Page that lists all names, for messages.
_LISTED = 'docs/results/workloads'


def names() -> tuple[str, ...]:
  """Returns all names, in the order of the papers."""
  return tuple(_workloads())


def get(name: str) -> workload_lib.Workload:
  """Returns a workload by its name.

  Raises:
    GdpError: there is no such workload.
  """
  return _find(name)[0]


def source(name: str, tell: Callable[[str], None] = logging.info,
           architecture: str = '') -> source_graph.SourceGraph:
  """Returns a workload's training step as the pass gets it.

  The graph is built in its own process the first time, and then kept in the
  cache folder ($GDP_CACHE_DIR, or gdp_grappler in the user's own).

  Args:
    name: One of `names()`.
    tell: Function that is called with a line if the graph has to be built.
    architecture: Architecture of the cluster's cards (see `architectures.of`).
      The graph is as the pass gets it on a machine with such a card.

  Raises:
    GdpError: there is no such workload, or it cannot be built.
  """
  return capture.capture(*_find(name), tell, architecture)


def expert_devices(name: str, graph: op_graph.OpGraph,
                   cluster: cluster_lib.Cluster,
                   op_seconds: np.ndarray) -> np.ndarray:
  """Returns the placement of a workload by a human expert, int [N].

  Ops that must share a device do so. It is not checked whether ops have a
  kernel on their device.

  Args:
    name: One of `names()`.
    graph: N ops, read from `source(name)`.
    cluster: D devices.
    op_seconds: float [N, D], seconds of each op on each device.

  Raises:
    GdpError: there is no such workload.
  """
  return get(name).expert(graph, stages.of(graph), cluster, op_seconds)


def _find(name: str) -> tuple[workload_lib.Workload, types.ModuleType]:
  known = _workloads()
  if name not in known:
    raise errors.GdpError(suggestions.unknown('workload', name, known, _LISTED))
  return known[name]


@functools.cache
def _workloads() -> dict[str, tuple[workload_lib.Workload, types.ModuleType]]:
  """Returns every workload, and the module that defines it."""
  result = {}
  for family in _FAMILIES:
    module = importlib.import_module(f'gdp_grappler.workloads.{family}')
    for workload in module.WORKLOADS:
      result[workload.name] = workload, module
  return result
