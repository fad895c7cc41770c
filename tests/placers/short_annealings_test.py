"""The default placer gives short annealings their starts."""

from gdp_grappler.placers import default_placer
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import staged_search
from helpers import clusters
from helpers import graphs
from helpers import problems


def test_short_annealings_begin_with_the_best_of_each_source(monkeypatch):
  given = []
  stock = staged_search.search

  def search(*arguments, several, **options):
    given.append(several)
    return stock(*arguments, several=several, **options)

  def drafts(problem, *_):
    found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
    found.add([[1, 2] * 6, [1] * 4 + [2] * 8], ('', 'maps'))
    return found

  monkeypatch.setattr(staged_search, 'search', search)
  monkeypatch.setattr(move_policy, 'before_search', drafts)
  problem = problems.make(graphs.make_graph(num_ops=12),
                          clusters.make_cluster(2), [[1.] * 3] * 12,
                          time_budget_s=1., repeatable=True)
  default_placer.DefaultPlacer(anchors=('round_robin',),
                               asks_policy=False).place(problem)
  several, = given
  assert [1, 2] * 6 in several.tolist()
  assert [1] * 4 + [2] * 8 in several.tolist()
  assert len(several) == search_config.DEFAULT.short.starts
