"""Workloads by name."""

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

# Modules of this package, each with `WORKLOADS`. Imported when asked for: they
# import TensorFlow.
_FAMILIES = ('rnnlm', 'gnmt', 'transformer_xl', 'inception', 'amoebanet',
             'wavenet', 'resnet', 'nmt')
# Where a user finds the names of all.
_LISTED = 'docs/results/workloads'


def names() -> tuple[str, ...]:
  """All names, in the papers' order."""
  return tuple(_workloads())


def get(name: str) -> workload_lib.Workload:
  """A workload.

  Raises:
    GdpError: there is none of that name.
  """
  return _find(name)[0]


def source(name: str, tell: Callable[[str], None] = logging.info,
           architecture: str = '') -> source_graph.SourceGraph:
  """A workload's training step as the pass receives it.

  Built in a process of its own the first time, then kept in the cache folder
  ($GDP_CACHE_DIR, or gdp_grappler in the user's own).

  Args:
    name: One of `names()`.
    tell: Hears one line if the graph has to be built.
    architecture: Of the cards of the cluster that it is placed for, as of
      `architectures.of`: as the pass receives it where there is such a card.

  Raises:
    GdpError: no such workload, it cannot be built, or the cache cannot be
      written.
  """
  return capture.capture(*_find(name), tell, architecture)


def expert_devices(name: str, graph: op_graph.OpGraph,
                   cluster: cluster_lib.Cluster,
                   op_seconds: np.ndarray) -> np.ndarray:
  """int [N], where a human expert puts the ops of a workload.

  What must share a device does; ops without a kernel on the device they get
  are not looked after.

  Args:
    name: One of `names()`.
    graph: N ops, read from `source(name)`.
    cluster: D devices.
    op_seconds: float [N, D], what each op takes on each device.

  Raises:
    GdpError: no such workload.
  """
  return get(name).expert(graph, stages.of(graph), cluster, op_seconds)


def _find(name: str) -> tuple[workload_lib.Workload, types.ModuleType]:
  known = _workloads()
  if name not in known:
    raise errors.GdpError(suggestions.unknown('workload', name, known, _LISTED))
  return known[name]


@functools.cache
def _workloads() -> dict[str, tuple[workload_lib.Workload, types.ModuleType]]:
  """Every workload, and the module that defines it."""
  result = {}
  for family in _FAMILIES:
    module = importlib.import_module(f'gdp_grappler.workloads.{family}')
    for workload in module.WORKLOADS:
      result[workload.name] = workload, module
  return result
