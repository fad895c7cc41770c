"""A step to place: its graph, its cluster, and the problem for a placer.

The pass makes a `Step` from a graph in memory (`of_source`). Programs make it
from the user's input (`gdp_grappler.problems`).
"""

from __future__ import annotations

import dataclasses
from typing import Callable, TYPE_CHECKING

import numpy as np

from gdp_grappler import progress
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.costs import cost_model as cost_model_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib

if TYPE_CHECKING:
  # The import needs TensorFlow. A graph of costs alone works without it.
  from gdp_grappler.graph import source_graph

# Function of a graph, a cluster and seconds of ops, float [N, D]. Returns the
# devices of the ops, int [N].
Expert = Callable[[op_graph.OpGraph, cluster_lib.Cluster, np.ndarray],
                  np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
  """One step of a program, and the cluster to place it on.

  Attributes:
    graph: N ops.
    cluster: D devices.
    source: The TensorFlow graph of the ops; None for a graph of costs alone.
    cost_model: Seconds of the ops; None for the roofline model.
    expert: Returns a human expert's devices of the ops; None if there is none.
  """

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  source: source_graph.SourceGraph | None = None
  cost_model: cost_model_lib.CostModel | None = None
  expert: Expert | None = None

  def with_rounding_allowed(self) -> Step:
    """The step whose ops may be on devices that round differently."""
    return dataclasses.replace(self, graph=self.graph.replace(may_round=True))

  def simulator(self) -> simulator_lib.Simulator:
    """A simulator of the step on the cluster."""
    return simulator_lib.Simulator(self.cluster, self.cost_model)

  def problem(self, evaluator: evaluator_lib.Evaluator | None = None,
              seed: int = 0) -> placer_lib.Problem:
    """The problem for a placer.

    Args:
      evaluator: Returns the time of a step on the cluster; by default a
        simulator. Placers minimise its `robust_evaluator.objective`.
      seed: Two runs with the same seed give the same placement.
    """
    objective = robust_evaluator.objective(evaluator or self.simulator())
    problem = placer_lib.Problem(self.graph, self.cluster, objective, seed)
    if self.expert is None:
      return problem
    return dataclasses.replace(
        problem, expert_devices=self.expert(self.graph, self.cluster,
                                            problem.op_seconds))


def of_source(source: source_graph.SourceGraph, cluster: cluster_lib.Cluster, *,
              live: bool = False, relocatable: bool = False,
              batch_size: int = assumptions.DEFAULT_BATCH_SIZE,
              trip_count: float = assumptions.DEFAULT_TRIP_COUNT,
              may_round: bool = False,
              tell: Callable[[str], None] | None = None) -> Step:
  """The step of a graph in memory, with the costs of the roofline model.

  Args:
    source: The graph.
    cluster: The devices to place the graph on.
    live: Whether the graph is about to run; see `graph_def_io.read`.
    relocatable: Whether the variables of a live graph may move.
    batch_size: Size of unknown dimensions.
    trip_count: Iterations of loops with an unknown number of iterations.
    may_round: Whether ops may be on devices that round differently.
    tell: Called with one line for each assumption.

  Raises:
    InvalidGraphError: the graph cannot be used.
  """
  from gdp_grappler.graph import graph_def_io
  progress.doing(f'reading {len(source.graph_def.node)} ops of {source.name}')
  step = Step(
      graph_def_io.read(source, live=live, relocatable=relocatable,
                        unknown_dim=batch_size, trip_count=trip_count,
                        tell=tell), cluster, source)
  return step.with_rounding_allowed() if may_round else step
