"""What graphs of the host's figures are made of; the stopwatch is replaced."""

import contextlib
import dataclasses

import pytest
import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.calibrating import clocks
from gdp_grappler.evaluation.calibrating import host_figures
from gdp_grappler.evaluation.calibrating import kernel_times
from gdp_grappler.evaluation.calibrating import suite
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.legality import kernels

_ON_GPU = op_graph.DEVICE_TYPES.index('GPU')
_MUL = next(kind for kind in suite.KINDS if kind.op_type == 'Mul')


class _Session:
  """Runs nothing and keeps the graph."""

  graphs: list = []

  def run(self, *unused_args, **unused_kwargs):
    """Nothing."""

  def make_callable(self, targets):
    """The names of what would run."""
    return lambda: [t.name for t in targets]


@pytest.fixture(name='bench')
def _bench(monkeypatch):
  """Two cards of four parts that nobody has; each op of a step takes 1 us."""
  _Session.graphs = []
  # Where nothing is noisy, fewer ops tell as much.
  monkeypatch.setattr(host_figures, '_OPS', 400)

  @contextlib.contextmanager
  def session(config):
    del config
    _Session.graphs.append(tf.compat.v1.get_default_graph())
    yield _Session()

  def quick(steps, unused_deadline=None):
    return [_needed(_Session.graphs[-1], step()) * 1e-6 for step in steps]

  monkeypatch.setattr(tf.compat.v1, 'Session', session)
  monkeypatch.setattr(clocks, 'quick', quick)
  return clocks.Bench(presets.preset('1xH100').devices[1], 4, 2)


def _needed(graph, names):
  """How many ops a step runs."""
  seen, waiting = set(), list(names)
  while waiting:
    op = graph.get_operation_by_name(waiting.pop())
    if op.name not in seen:
      seen.add(op.name)
      waiting += [t.op.name for t in op.inputs]
      waiting += [c.name for c in op.control_inputs]
  return len(seen)


def _check_kernels():
  """All that is on a card has a kernel there, and is spread as it should be."""
  assert _Session.graphs
  for graph in _Session.graphs:
    for node in graph.as_graph_def().node:
      if 'GPU' in node.device:
        assert kernels.allowed_types(node)[_ON_GPU], (node.name, node.op)


def test_ops_of_chains_and_stars(bench, monkeypatch):
  monkeypatch.setattr(host_figures, '_traced_kernel_s', lambda *_: None)
  found = host_figures.ops(bench, 3)
  assert found['launching_op_s'] == pytest.approx(1e-6, rel=.01)
  assert found['other_op_s'] == pytest.approx(1e-6, rel=.01)
  assert found['cudnn_op_s'] == pytest.approx(1e-6, rel=.05)
  assert found['small_kernel_s'] == pytest.approx(1e-6, rel=.05)
  # Where the card does not tell what a kernel takes, all of it is the gap.
  assert found['gap_s'] == found['small_kernel_s']
  _check_kernels()


def test_the_gap_is_what_the_card_says_is_no_kernel(bench, monkeypatch):
  monkeypatch.setattr(host_figures, '_traced_kernel_s', lambda *_: 4e-7)
  found = host_figures.ops(bench, 3)
  assert found['gap_s'] == pytest.approx(found['small_kernel_s'] - 4e-7)


def test_four_parts_side_by_side(bench):
  found = host_figures.side_by_side(bench)
  assert found['side_by_side_devices'] == 4
  assert found['side_by_side_op_s'] == pytest.approx(1e-6, rel=.01)
  devices = {op.device for op in _Session.graphs[-1].get_operations()}
  assert {f'/device:GPU:{i}' for i in range(4)} <= devices
  _check_kernels()


def test_hops_within_the_card_to_another_and_to_the_host(bench):
  found = host_figures.hops(bench)
  assert set(found) == {
      'hop_s', 'busy_hop_s', 'card_hop_s', 'busy_card_hop_s', 'host_hop_s',
      'busy_host_hop_s', 'copy_issue_s'
  }
  # Others, such as those that set variables, go with what they belong to.
  on = [{op.device for op in graph.get_operations()} - {''}
        for graph in _Session.graphs]
  assert {'/device:GPU:0', '/device:GPU:4'} in on  # Of the other card.
  assert {'/device:GPU:0', '/device:CPU:0'} in on
  _check_kernels()


def test_links_of_every_kind(bench):
  host_figures.links(bench)
  assert len(_Session.graphs) == 4
  _check_kernels()


def test_a_rate_that_noise_hides_is_left_out(bench, monkeypatch):
  """The cache refused a rate of 4e19 bytes per second, with all figures."""
  monkeypatch.setattr(host_figures, '_steps', lambda *_: [1., 1 + 1e-11])
  assert not host_figures.links(bench)


def test_no_second_part_and_no_second_card(bench):
  alone = clocks.Bench(bench.device, 1)
  assert not host_figures.side_by_side(alone)
  assert set(host_figures.hops(alone)) == {'host_hop_s', 'busy_host_hop_s'}


def test_copies_run_behind_products_and_are_as_many_as_are_counted(bench):
  found, left_out = kernel_times.of_kind(bench, _MUL, ((1 << 8,), (1 << 16,)),
                                         3)
  assert not left_out
  assert [k.seconds for k in found] == [pytest.approx(1e-6)] * 2
  graph = _Session.graphs[-1]
  copies = [op for op in graph.get_operations() if op.type == 'Mul']
  products = [op for op in graph.get_operations() if op.type == 'MatMul']
  assert len(products) == 3
  assert all(op.control_inputs == [products[-1]] for op in copies)
  _check_kernels()


def test_what_is_too_large_or_has_no_kernel_is_left_out(bench):
  _, left_out = kernel_times.of_kind(bench, _MUL, ((1 << 30,),), 3)
  assert left_out == ['Mul 1073741824: needs more memory']


def test_a_size_that_fails_is_left_out_and_the_others_are_not(
    bench, monkeypatch):
  quick, turns = clocks.quick, []

  def failing(steps, deadline=None):
    turns.append(1)
    if len(turns) == 1:
      raise tf.errors.ResourceExhaustedError(None, None, 'no memory')
    return quick(steps, deadline)

  monkeypatch.setattr(clocks, 'quick', failing)
  found, left_out = kernel_times.of_kind(bench, _MUL, ((1 << 8,), (1 << 16,)),
                                         3)
  assert left_out == ['Mul 256: no memory'] and len(found) == 1


def test_without_time_sizes_are_left_out(bench):
  late = dataclasses.replace(bench, deadline=deadlines.within(0.))
  found, left_out = kernel_times.of_kind(late, _MUL, ((1 << 8,),), 3)
  assert not found and left_out == ['Mul 256: no time left']


def test_as_many_products_as_outlast_the_launches(bench):
  # A product takes 1 us more than none by the clock of this test.
  assert kernel_times.products_ahead(bench) == 500


def test_all_of_it_runs_on_a_cpu_that_is_said_to_run_ahead(monkeypatch):
  monkeypatch.setattr(kernel_times, '_PRODUCT', 16)
  device = dataclasses.replace(
      presets.preset('cpu').devices[0], launch='asynchronous', slots=1,
      copy_s=0., copy_bytes_per_s=None)
  bench = clocks.Bench(device, 2)
  assert 1 <= kernel_times.products_ahead(bench) <= 500
  found = host_figures.ops(bench, 3)
  # A CPU tells nothing of streams: the gap is what is assumed, or less.
  assert 0 <= found['gap_s'] <= found['small_kernel_s']
  kernels_, _ = kernel_times.of_kind(bench, _MUL, ((1 << 12,),), 3)
  assert len(kernels_) <= 1
