"""Whatever is drawn is a problem, and the planted placement answers it."""

from __future__ import annotations

import collections
import subprocess
import sys

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from gdp_grappler.graph import op_graph
from gdp_grappler.workloads.synthetic import clusters
from gdp_grappler.workloads.synthetic import gradients
from gdp_grappler.workloads.synthetic import synthetic
from helpers import fresh


def _drawn(seed: int, **config: object) -> synthetic.Drawn:
  return synthetic.draw(np.random.default_rng(seed), synthetic.Config(**config))


def _graph(seed: int, family: str, ops: int) -> op_graph.OpGraph:
  return synthetic.draw_graph(np.random.default_rng(seed), family, ops)[0]


def _fullness(drawn: synthetic.Drawn) -> float:
  """Highest use of a card's memory in the planted placement, as a share."""
  cluster = drawn.cluster
  peaks = drawn.step.simulator().evaluate(drawn.graph, drawn.planted).peak_bytes
  return max(peaks[pool] / cluster.pool_bytes[pool]
             for pool, device in zip(cluster.memory_pools, cluster.devices)
             if device.type == 'GPU')


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(seed=st.integers(0, 1 << 30),
                  family=st.sampled_from(synthetic.ALL_FAMILIES))
def test_what_was_planted_fits(seed, family):
  drawn = _drawn(seed, ops=(100, 500), families=(family,))
  assert not drawn.planted.violations(drawn.graph)
  evaluation = drawn.step.simulator().evaluate(drawn.graph, drawn.planted)
  assert evaluation.valid and evaluation.step_time_s > 0
  assert 0 < _fullness(drawn) <= .95


@pytest.mark.parametrize('family', synthetic.ALL_FAMILIES)
def test_a_seed_stands_for_a_problem(family):
  one, same, other = (
      _drawn(seed, ops=(300, 300), families=(family,)) for seed in (1, 1, 2))
  assert one.graph.fingerprint == same.graph.fingerprint
  assert one.cluster == same.cluster
  assert one.planted.devices.tolist() == same.planted.devices.tolist()
  assert one.graph.fingerprint != other.graph.fingerprint


@pytest.mark.parametrize('family', synthetic.ALL_FAMILIES)
def test_the_number_of_ops_is_about_what_was_asked_for(family):
  counts = [_graph(seed, family, 1000).num_ops for seed in range(7)]
  assert 350 < np.median(counts) < 2000


@pytest.mark.parametrize('family', synthetic.ALL_FAMILIES)
def test_nearly_every_op_is_used(family):
  graph = _graph(0, family, 400)
  ends = set(range(graph.num_ops)) - set(graph.edges[:, 0].tolist())
  # Left are the last op, and gradients that TensorFlow makes as well before
  # Grappler prunes.
  assert graph.num_ops - 1 in ends
  assert len(ends) < .2 * graph.num_ops


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('family', synthetic.ALL_FAMILIES)
def test_every_variable_that_is_read_is_updated(family, seed):
  graph = _graph(seed, family, 400)
  readers = collections.defaultdict(set)
  for producer, consumer in graph.edges.tolist():
    readers[producer].add(graph.op_types[consumer])
  read = [
      kinds for op, kinds in readers.items()
      if graph.op_types[op] == 'VarHandleOp' and 'ReadVariableOp' in kinds
  ]
  assert read and all(kinds & set(gradients.OPTIMIZERS) for kinds in read)


def test_memories_are_full_where_that_is_asked_for():
  drawn = _drawn(3, ops=(500, 500), tight=1., fullest=1.)
  assert .65 < _fullness(drawn) <= 1


@pytest.mark.parametrize('count', [2, 3, 7, 8, 16])
def test_clusters_have_the_cards_that_were_asked_for(count):
  for seed in range(10):
    cluster = clusters.draw(np.random.default_rng(seed), count)
    assert len(cluster.accelerators) == count


@pytest.mark.parametrize('config', [{'accelerators':
    (1, 2)}, {'accelerators': (2, 17)}, {'ops':
        (5, 4)}, {'fullest': 0.}, {'families': ()}, {'families': ('gird',)}])
def test_what_cannot_be_drawn_is_told(config):
  with pytest.raises(ValueError, match=next(iter(config))):
    synthetic.Config(**config)


def test_drawing_needs_no_tensorflow():
  code = ('import sys; import numpy as np; '
          'from gdp_grappler.workloads.synthetic import synthetic; '
          'synthetic.draw(np.random.default_rng(0), '
          'synthetic.Config(ops=(200, 200))); '
          'assert "tensorflow" not in sys.modules')
  subprocess.run([sys.executable, '-c', code], env=fresh.environment(),
                 check=True)
