import numpy as np
import pytest

from gdp_grappler.graph import coarsening
from gdp_grappler.placers.policy import policy_decoding
from helpers import graphs
from helpers import problems


def _said(kind, seed=0, logits=None):
  problem = problems.make(graphs.random_graph(seed, 400))
  seconds = problem.op_seconds
  sets = policy_decoding.sizes(kind, problem.graph, problem.allowed, seconds)
  units = sets[-1]
  allowed = np.ones((int(units.max()) + 1, problem.cluster.num_devices), bool)
  np.logical_and.at(allowed, units, problem.allowed[problem.graph.groups])
  if logits is None:
    logits = np.random.default_rng(seed).normal(size=allowed.shape)
  logits = np.where(allowed, logits, -np.inf)
  return policy_decoding.decisions(logits, sets, seconds, seed), logits, sets


@pytest.mark.parametrize('kind', ['coarse', 'nested', 'fine'])
def test_the_likeliest_is_first_and_all_are_legal(kind):
  rows, logits, _ = _said(kind)
  assert rows[0].tolist() == logits.argmax(axis=1).tolist()
  assert np.isfinite(logits[np.arange(len(logits)), rows]).all()
  assert len(np.unique(rows, axis=0)) > 5
  again, _, _ = _said(kind)
  assert (rows == again).all()


def test_sets_are_placed_as_a_whole_by_what_most_of_them_say():
  rows, logits, sets = _said(coarsening.NESTED, seed=3)
  first = np.unique(sets[-1], return_index=True)[1]
  largest = np.unique(sets[0][first], return_inverse=True)[1].reshape(-1)
  probabilities = np.exp(logits)
  said = np.log(probabilities / probabilities.sum(axis=1, keepdims=True))
  for one in np.unique(largest):
    own = largest == one
    for row in rows[1:5]:
      assert len(set(row[own].tolist())) == 1
    assert rows[1][own][0] == said[own].sum(axis=0).argmax()


def test_work_is_balanced_where_one_device_is_preferred_for_all():
  problem = problems.make(graphs.random_graph(5, 400))
  seconds, count = problem.op_seconds, problem.cluster.num_devices
  sets = policy_decoding.sizes(coarsening.NESTED, problem.graph,
                               problem.allowed, seconds)
  units = int(sets[-1].max()) + 1
  liking = np.random.default_rng(0).normal(size=(units, count))
  rows = policy_decoding.decisions(liking + 9. * (np.arange(count) == 1), sets,
                                   seconds, 0)
  assert set(rows[0].tolist()) == {1}
  # Row 3 is the balanced placement of the largest sets.
  assert len(set(rows[3].tolist())) == count
