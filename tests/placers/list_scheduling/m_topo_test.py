from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import heft
from gdp_grappler.placers.list_scheduling import m_topo
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.search import annealing
from helpers import clusters
from helpers import graphs
from helpers import problems
from helpers import task_graphs
from helpers import tight_memory


def test_equal_shares_of_memory_in_topological_order():
  graph = graphs.chain(12, 0, param_bytes=10)
  problem = problems.make(graph, clusters.make_cluster(3), [[9, 1, 1, 1]] * 12)
  shared = task_graphs.proposals_of(problem)
  propose = m_topo._proposer(shared, proposals.Bundles(), False,
                             shared.group_bytes)
  assert propose(problem.cluster.pool_bytes).tolist() == ([1] * 4 + [2] * 4
                                                          + [3] * 4)


def _step_s(placer):
  """The step of parallel branches with large weights on four GPUs.

  The weights fill 75 % of the memories.
  """
  case = tight_memory.case('branches', 4, .75, False, clusters.FixedCosts)
  problem = placer_lib.Problem(
      case.graph, case.cluster,
      simulator.Simulator(case.cluster, clusters.FixedCosts(case.seconds)))
  price = problem.evaluator.evaluate(problem.graph, placer.place(problem))
  assert price.valid
  return price.step_time_s


def test_tight_memory_is_not_filled_with_neighbours_alone(monkeypatch):
  """The placer once filled one device after the other in such a problem.

  Its step was then twice as long as that of other placers.
  """
  assert _step_s(m_topo.MTopoPlacer()) < 1.3 * _step_s(heft.HeftPlacer())
  # Without the search that follows, the step is still shorter.
  monkeypatch.setattr(annealing, 'find_fitting',
                      lambda problem, devices, **options: devices)
  by_finish_s = _step_s(m_topo.MTopoPlacer())
  monkeypatch.setattr(m_topo.MTopoPlacer, '_tight', ())
  assert by_finish_s < .75 * _step_s(m_topo.MTopoPlacer())
