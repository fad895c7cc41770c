"""Logs of searches, as they are thinned, joined and written."""

from __future__ import annotations

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.features.moves import schema
from gdp_grappler.placers.search.moves import move_scoring
from helpers import clusters
from helpers import graphs
from helpers import problems
from placer_model.pretraining import logs


def _log(gains, rounds=None) -> logs.Log:
  gains = np.array(gains, np.float32)
  return logs.Log(
      np.arange(2. * len(gains), dtype=np.float32).reshape(-1, 2), gains,
      np.zeros(len(gains), np.int32) if rounds is None else np.array(rounds))


def test_rounds_of_the_policy_are_written_down():
  problem = problems.make(graphs.random_graph(1, 40), clusters.make_cluster(2),
                          seconds=1.)
  log = logs.collect(problem, 3, 1., np.random.default_rng(0))
  assert log is not None
  # Gains that are tried together are priced, too, and may save a round.
  assert 2 <= log.rounds[-1] + 1 <= 3 and len(log) > 100
  assert log.features.shape == (len(log), len(schema.names(move_scoring.KINDS)))


@pytest.mark.parametrize('known', [0., 1.])
def test_scores_of_priced_moves_are_their_gains(known):
  problem = problems.make(graphs.random_graph(2, 30), clusters.make_cluster(2),
                          seconds=1.)
  rng = np.random.default_rng(0)
  now, *then = rng.integers(3, size=(9, problem.graph.num_groups))
  scorer = logs.PricedMoves(problem, move_scoring.MoveDescriber(problem), known,
                            rng)
  assert scorer.log() is None
  scores = scorer.scores(now, np.array(then), ['group'] * 8)
  before, *after = (problem.evaluator.evaluate(
      problem.graph,
      placement_lib.from_groups(problem.graph, row,
                                problem.cluster)).step_time_s
                    for row in (now, *then))
  gains = [max((before - s) / before, -1) for s in after]
  log = scorer.log()
  assert log is not None and log.gains == pytest.approx(gains)
  assert scores == pytest.approx(gains if known else [-2.] * 8)


def test_moves_that_make_room_gain_all():
  graph = graphs.make_graph(num_ops=2, param_bytes=[60, 70])
  problem = problems.make(graph, clusters.make_cluster(2, memory_bytes=100),
                          seconds=1.)
  scorer = logs.PricedMoves(problem, move_scoring.MoveDescriber(problem), 1.,
                            np.random.default_rng(0))
  full, split = np.array([1, 1]), np.array([1, 2])
  assert scorer.scores(full, split[None], ['group']).tolist() == [1]
  assert scorer.scores(split, full[None], ['group']).tolist() == [-1]


def test_where_nothing_moves_nothing_is_written():
  problem = problems.make(graphs.chain(3, allowed_types=[[True, False]] * 3))
  assert logs.collect(problem, 3, 1., np.random.default_rng(0)) is None


def test_rounds_of_several_logs_stay_apart():
  log = logs.joined([_log([.1, .2], [0, 1]), _log([]), _log([.3, .4], [0, 0])])
  assert log.rounds.tolist() == [0, 1, 2, 2]


def test_what_is_saved_is_loaded(tmp_path):
  log = logs.joined([_log([.5, -1.]), _log([0.])])
  assert log.gains.tolist() == [.5, -1., 0.]
  logs.save(tmp_path / 'log.npz', log)
  found = logs.load(tmp_path / 'log.npz')
  assert found.features.tolist() == log.features.tolist()
  assert found.gains.tolist() == log.gains.tolist()
  assert found.rounds.tolist() == log.rounds.tolist() == [0, 0, 1]


def test_damage_is_told(tmp_path):
  (tmp_path / 'log.npz').write_bytes(b'PK')
  with pytest.raises(errors.GdpError, match='as a log of moves'):
    logs.load(tmp_path / 'log.npz')
