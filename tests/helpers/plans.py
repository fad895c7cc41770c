"""Plan files for tests."""

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan as plan_lib
from helpers import clusters
from helpers import graphs


def save_with_words(path: str, *variables: str) -> None:
  """Saves the plan of two ops, one of them in the layer `words`.

  Args:
    path: File to write.
    variables: Variables of the two ops; '' for none.
  """
  graph = graphs.make_graph([
      (0, 1, 8)
  ]).replace(names=('net/words_1/GatherV2', 'unknown_1'), variables=variables)
  plan_lib.save(path, graph,
                placement_lib.Placement([0, 1], clusters.make_cluster(2)))
