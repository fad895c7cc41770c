"""Logs of searches, as they are thinned, joined and written."""

from __future__ import annotations

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.features.moves import schema
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.moves import move_filter
from helpers import clusters
from helpers import graphs
from helpers import problems
from placer_model.pretraining import logs


def _log(gains) -> logs.Log:
  gains = np.array(gains, np.float32)
  return logs.Log(
      np.arange(2. * len(gains), dtype=np.float32).reshape(-1, 2), gains,
      np.ones_like(gains))


def test_a_search_is_written_down():
  problem = problems.make(graphs.random_graph(1, 40), clusters.make_cluster(2),
                          seconds=1.)
  starts = np.ones((1, problem.graph.num_groups), np.int32)
  log = logs.collect(problem, starts, 200, np.random.default_rng(0))
  assert log is not None and 100 < len(log) < 200
  assert log.features.shape[1] == len(schema.names(move_filter.KINDS))
  assert 0 < log.gaining.mean() < 1


def test_a_search_under_priorities_is_written_down():
  cluster = presets.preset('2xP100')
  problem = problems.make(graphs.random_graph(1, 40), cluster, seconds=1e-3)
  starts = np.full((1, problem.graph.num_groups), cluster.accelerators[0],
                   np.int32)
  plain, ordered = (logs.collect(problem, starts, 200, np.random.default_rng(0),
                                 each) for each in (False, True))
  assert plain is not None and ordered is not None
  assert 100 < len(ordered) < 200 and 0 < ordered.gaining.mean() < 1
  # The first batch is of the same moves, which wait in other queues; sets are
  # placed anew by other schedules.
  first, other = (log.features[:search_config.DEFAULT.annealing.batch]
                  for log in (plain, ordered))
  drawn = first[:, -1] + other[:, -1] == 0
  groups, waiting = map(schema.NATIVE.index, ('groups', 'waiting_s'))
  assert (first[drawn, groups] == other[drawn, groups]).all()
  assert (first[drawn, waiting]
          != other[drawn,
                   waiting]).sum() > search_config.DEFAULT.annealing.batch / 3


def test_where_nothing_moves_nothing_is_written():
  problem = problems.make(graphs.chain(3, allowed_types=[[True, False]] * 3))
  starts = np.zeros((1, 3), np.int32)
  assert logs.collect(problem, starts, 50, np.random.default_rng(0)) is None


def test_moves_that_were_left_out_are_stood_for():
  log = _log([.1] * 10 + [-.1] * 4000).thinned(.25, np.random.default_rng(0))
  assert log.gaining.sum() == 10
  assert log.weights[log.gaining].tolist() == [1] * 10
  assert log.weights.sum() == pytest.approx(4010, rel=.1)


def test_what_is_saved_is_loaded(tmp_path):
  log = logs.joined([_log([.5, -1.]), _log([0.])])
  assert log.gains.tolist() == [.5, -1., 0.]
  logs.save(tmp_path / 'log.npz', log)
  found = logs.load(tmp_path / 'log.npz')
  assert found.features.tolist() == log.features.tolist()
  assert found.gains.tolist() == log.gains.tolist()


def test_damage_is_told(tmp_path):
  (tmp_path / 'log.npz').write_bytes(b'PK')
  with pytest.raises(errors.GdpError, match='as a log of moves'):
    logs.load(tmp_path / 'log.npz')
