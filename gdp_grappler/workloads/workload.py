"""The type of a workload: a model, its sizes, and its expert."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph

# From graph, stages int [N], cluster and seconds float [N, D] to devices int
# [N].
Expert = Callable[
    [op_graph.OpGraph, np.ndarray, cluster_lib.Cluster, np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Workload:
  """A training step that can be built, run and placed.

  Attributes:
    name: Name, such as 'rnnlm-2', or 'rnnlm-2@tiny' for a small variant.
    setting: One line for tables: batch, sizes, unroll length, optimizer.
    source: Paper and section of the setting.
    paper_ops: Number of ops according to the paper; 0 if the paper has none.
    num_devices: Number of accelerators in the papers.
    build: Function that makes the model in the current v1 graph and returns the
      loss, a scalar. Inputs are placeholders of known shape. Ops and variables
      of stage `k` are made in a name scope and a variable scope that begin with
      'stage<k>'. So the names of gradients and optimizer slots contain it as
      well.
    optimizer: Function that makes the v1 optimizer.
    expert: Function that returns the placement of a human expert.
  """

  name: str
  setting: str
  source: str
  paper_ops: int
  num_devices: int
  build: Callable[[], Any]
  optimizer: Callable[[], Any]
  expert: Expert
