"""A step that is to be placed: as it was read, and the problem that it poses.

The pass comes with a graph in memory (`of_source`), programs with whatever a
user typed (`problems`); from here on both go the same way.
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
  # It needs TensorFlow, which a graph with costs of its own does not.
  from gdp_grappler.graph import source_graph

# graph, cluster, seconds float [N, D] -> devices int [N].
Expert = Callable[[op_graph.OpGraph, cluster_lib.Cluster, np.ndarray],
                  np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
  """One step of a program, and where it is to run.

  Attributes:
    graph: N ops.
    cluster: D devices.
    source: What the ops were read from; None for a graph of costs alone.
    cost_model: Prices of the ops; None for the roofline.
    expert: Says where a human expert puts the ops; None if nobody does.
  """

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  source: source_graph.SourceGraph | None = None
  cost_model: cost_model_lib.CostModel | None = None
  expert: Expert | None = None

  def that_may_round(self) -> Step:
    """The step with ops that may go where they compute other numbers."""
    return dataclasses.replace(self, graph=self.graph.replace(may_round=True))

  def simulator(self) -> simulator_lib.Simulator:
    """Prices placements of the step."""
    return simulator_lib.Simulator(self.cluster, self.cost_model)

  def problem(self, evaluator: evaluator_lib.Evaluator | None = None,
              seed: int = 0) -> placer_lib.Problem:
    """The question that a placer answers.

    Args:
      evaluator: Says what a step takes on the cluster; by default a simulator.
        What is minimised is its `robust_evaluator.objective`.
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
  """The step of a graph in memory, priced by the roofline.

  Args:
    source: The graph.
    cluster: Where it is to run.
    live: Whether it is about to run; see `graph_def_io.read`.
    relocatable: Whether variables that it receives may move all the same.
    batch_size: Stands for dimensions that the graph leaves open.
    trip_count: Iterations of loops whose number it does not tell.
    may_round: Whether ops may go where they compute other numbers.
    tell: Hears one line for everything that was assumed.

  Raises:
    InvalidGraphError: the graph cannot be used.
  """
  from gdp_grappler.graph import graph_def_io
  progress.doing(f'reading {len(source.graph_def.node)} ops of {source.name}')
  step = Step(
      graph_def_io.read(source, live=live, relocatable=relocatable,
                        unknown_dim=batch_size, trip_count=trip_count,
                        tell=tell), cluster, source)
  return step.that_may_round() if may_round else step
