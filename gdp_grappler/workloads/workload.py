"""What every workload is: a model, its size, and how an expert places it."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph

# graph, stages int [N], cluster, seconds float [N, D] -> devices int [N].
Expert = Callable[
    [op_graph.OpGraph, np.ndarray, cluster_lib.Cluster, np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Workload:
  """A training step that can be built, run and placed.

  Attributes:
    name: Such as 'rnnlm-2', or 'rnnlm-2@tiny' for a small variant.
    setting: One line for tables: batch, sizes, unroll length, optimizer.
    source: Paper and section that the setting is from.
    paper_ops: Ops as the paper counts them; 0 where it does not say.
    num_devices: Accelerators that the papers give it.
    build: Makes the model in the current v1 graph and returns the loss, a
      scalar. Inputs are placeholders of known shape. Ops and variables of
      stage `k` are made under a name scope and a variable scope that begins
      with 'stage<k>', so that gradients and optimizer slots carry it as well.
    optimizer: Makes the v1 optimizer.
    expert: How a human expert places it.
  """

  name: str
  setting: str
  source: str
  paper_ops: int
  num_devices: int
  build: Callable[[], Any]
  optimizer: Callable[[], Any]
  expert: Expert
