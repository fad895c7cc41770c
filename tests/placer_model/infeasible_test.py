"""Why no sampled placement is valid."""

import math

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from helpers import clusters
from helpers import graphs
from helpers import problems
from placer_model import infeasible


def test_steps_that_fail_are_not_said_to_exceed_a_memory(monkeypatch):
  """Measured steps that failed otherwise were said to exceed a memory."""
  problem = problems.make(graphs.make_graph(num_ops=3),
                          clusters.make_cluster(2))
  failed = evaluator_lib.Evaluation(
      math.inf, (0, 0, 0),
      (placement_lib.Violation('run', 'node x: no such file.'),), False)
  monkeypatch.setattr(problem.evaluator, 'evaluate', lambda *_: failed)
  placement = placement_lib.Placement([1, 1, 1], problem.cluster)
  said = str(infeasible.none_valid(problem, 7, placement))
  assert said.startswith('None of 7 sampled placements of "test" runs on ')
  assert 'The last one: node x: no such file. Mend that, or ' in said
