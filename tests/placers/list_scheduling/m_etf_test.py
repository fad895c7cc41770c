from gdp_grappler.cluster import presets
from gdp_grappler.placers.list_scheduling import m_etf
from helpers import graphs
from helpers import problems
from helpers import stopwatches


def test_a_stopwatch_that_says_the_same():
  cluster = presets.preset('2xP100')
  graph = graphs.random_graph(3, 60)
  slow = problems.make(graph, cluster, wrap=stopwatches.Stopwatch)
  fast = problems.make(graph, cluster)
  place = m_etf.MEtfPlacer().place
  assert place(slow).devices.tolist() == place(fast).devices.tolist()
