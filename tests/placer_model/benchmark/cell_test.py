"""All that is known about a cell, in numbers one can compute in the head."""

import dataclasses
import time
import types

import numpy as np
import pytest

from gdp_grappler import deadlines
from gdp_grappler import digests
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import bounds
from gdp_grappler.evaluation import deadline_evaluator
from gdp_grappler.evaluation import price as price_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import registry
from helpers import bench_results
from helpers import bench_worker
from helpers import clusters
from helpers import graphs
from helpers import orders
from helpers import stopwatches
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import clocks as clocks_lib
from placer_model.benchmark import headroom
from placer_model.benchmark import loading
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

_TASK = tasks_lib.Task('net', 'test')


def _loaded(graph, cluster, costs):
  seconds = costs.op_seconds(graph, cluster)
  return loading.Loaded(_TASK, graph, cluster, costs,
                        bound=bounds.lower_bound(graph, cluster, seconds))


@pytest.fixture(autouse=True)
def _fakes(monkeypatch):
  monkeypatch.setattr(registry, 'create', bench_worker._create)


def _run(tmp_path, name, graph=None, cluster=None, time_budget_s=None,
         **cluster_options):
  graph = graph or graphs.chain(4, tensor_bytes=100, groups=[0, 0, 1, 1])
  cluster = cluster or clusters.make_cluster(1, **cluster_options)
  costs = clusters.FixedCosts(1.)
  return cell_lib.run(_loaded(graph, cluster, costs),
                      settings_lib.Settings(time_budget_s=time_budget_s), name,
                      simulator.Simulator(cluster, costs),
                      tmp_path / 'plans' / 'plan.json')


def test_a_placement_on_one_device(tmp_path):
  record = _run(tmp_path, 'first')
  assert record['status'] == cell_lib.OK
  assert record['step_time_s'] == record['ordered_step_time_s'] == 4.
  assert (record['lower_bound_s'], record['over_bound']) == (4., 1.)
  assert (record['cut_tensors'], record['cut_bytes']) == (0, 0)
  # Two neighbouring tensors live at a time.
  assert record['peak_bytes'] == {'CPU:0': 200, 'GPU:0': 0}
  assert record['ops'] == {'CPU:0': 4, 'GPU:0': 0}
  assert record['evaluations'] == 0 and record['curve'] == []
  assert record['simulated'] and record['missing_bytes'] == {}


def test_a_search(tmp_path):
  record = _run(tmp_path, 'searching')
  # Both split placements are the same: 4 s of work, 2 s for one transfer.
  assert record['evaluations'] == 3
  assert [[count, step_s] for count, _, step_s in record['curve']] == [[1, 6.],
                                                                       [3, 4.]]
  assert record['won_by'] == 'the last one'


def test_the_plan_is_written(tmp_path):
  graph = graphs.chain(4, groups=[0, 0, 1, 1])
  _run(tmp_path, 'first', graph)
  cluster = clusters.make_cluster(1)
  placement = plan.load(str(tmp_path / 'plans' / 'plan.json'), graph, cluster)
  np.testing.assert_array_equal(placement.devices, [0] * 4)


def test_out_of_memory_says_by_how_much(tmp_path):
  record = _run(tmp_path, 'first', memory_bytes=150)
  assert record['status'] == cell_lib.OOM
  assert record['step_time_s'] is None and record['over_bound'] is None
  assert record['missing_bytes'] == {'CPU:0': 50}


def test_an_illegal_placement_is_an_error(tmp_path):
  with pytest.raises(cell_lib.IllegalPlacementError,
                     match='ILLEGAL PLACEMENT by torn: it breaks 2 rules'):
    _run(tmp_path, 'torn')
  assert not (tmp_path / 'plans' / 'plan.json').exists()


def test_limits_of_a_placement(tmp_path):
  record = _run(tmp_path, 'searching')
  assert record['limits'] == {
      'critical_path_s': 4., 'busiest_device_s': 4., 'busiest_channel_s': 0.,
      'busiest_hosted_s': 0.
  }


def test_the_dispatch_of_short_kernels_limits_a_placement(tmp_path):
  """It was called waiting, although no other order could gain."""
  graph, cluster = graphs.make_graph(num_ops=40), presets.preset('1xH100')
  costs = clusters.FixedCosts([[1., 1e-7]] * 40)
  loaded = _loaded(graph, cluster, costs)
  record = cell_lib.run(loaded, settings_lib.Settings(), 'all_on_gpu',
                        simulator.Simulator(cluster, costs),
                        tmp_path / 'plan.json')
  limits, step_s = record['limits'], record['step_time_s']
  assert limits['busiest_device_s'] < .5 * step_s
  assert .9 * step_s < limits['busiest_hosted_s'] < 1.1 * step_s
  task = {**loaded.summary(), 'cells': {'all_on_gpu': record}}
  assert headroom.verdict(task).reason == 'host'


def test_the_ordered_step_is_that_of_the_best_proposal(tmp_path, monkeypatch):
  graph, apart, costs = orders.late_chain(3)
  together = dataclasses.replace(apart, devices=[1] * graph.num_ops)

  class Both:

    def place(self, problem):
      return self.proposals(problem)[0]

    def proposals(self, problem):
      # Whoever may look for orders is told what they bring.
      assert problem.simulator is not None
      return together, apart

  monkeypatch.setattr(registry, 'create', lambda name: Both())
  record = cell_lib.run(_loaded(graph, apart.cluster, costs),
                        settings_lib.Settings(), 'both',
                        simulator.Simulator(apart.cluster, costs),
                        tmp_path / 'plan.json')
  # Of the four short ops and the long one, one after the other; in order, the
  # sender and its message come first.
  assert record['step_time_s'] == 7.
  assert record['ordered_step_time_s'] == pytest.approx(5., rel=1e-5)
  written = plan.load(str(tmp_path / 'plan.json'), graph, apart.cluster)
  assert written.devices.tolist() == together.devices.tolist()
  # The placement of the ordered step was not written.
  ordered = plan.load(str(tmp_path / 'plan-ordered.json'), graph, apart.cluster)
  assert ordered.devices.tolist() == apart.devices.tolist()
  again = price_lib.price(graph, ordered,
                          simulator.Simulator(apart.cluster, costs))
  assert again.ordered_s == record['ordered_step_time_s']


def test_an_ordered_step_is_not_longer_than_without_edges():
  """The ordered step was of another, slower placement."""
  graph, apart, costs = orders.late_chain(3)
  faster = dataclasses.replace(apart, devices=[2, 2, 2, 1, 1])
  priced = simulator.Simulator(apart.cluster, costs)
  fifo = priced.evaluate(graph, faster)
  assert fifo.step_time_s == 4.
  assert cell_lib._ordered(graph, priced, priced, apart, fifo) == (fifo, None)


def test_without_edges_there_is_one_plan(tmp_path):
  _run(tmp_path, 'first')
  assert not (tmp_path / 'plans' / 'plan-ordered.json').exists()


class _Measuring(stopwatches.Runner):
  """No two runs take the same time."""

  def evaluate(self, graph, placement):
    found = super().evaluate(graph, placement)
    return dataclasses.replace(found, step_time_s=found.step_time_s + self.runs,
                               spread_s=.25)


@pytest.fixture(name='measuring')
def _measuring(monkeypatch):
  """Measures steps of the cluster of `_run`, and begins with no run."""
  cluster = clusters.make_cluster(1)
  result = _Measuring(simulator.Simulator(cluster, clusters.FixedCosts(1.)))
  monkeypatch.setattr(cell_lib, '_evaluator', lambda *_: result)
  return result


def test_the_start_of_processes_takes_no_time_of_the_search(
    tmp_path, measuring, monkeypatch):
  """It took most of a short budget: a search ended after its first price."""
  runs = []

  class Searches(bench_worker._Searching):

    def place(self, problem):
      runs.append(measuring.runs)
      return super().place(problem)

  monkeypatch.setattr(registry, 'create', lambda name: Searches())
  within = deadlines.within
  monkeypatch.setattr(
      deadlines, 'within', lambda *arguments:
      (runs.append(measuring.runs), within(*arguments))[1])
  _run(tmp_path, 'searching', time_budget_s=1e3)
  assert runs == [1, 1]


def test_prices_after_the_deadline_do_not_count(tmp_path, measuring):
  """Placements that were not run counted as priced."""
  record = _run(tmp_path, 'searching', time_budget_s=0.)
  assert measuring.runs == 3  # The start, the first placement, the result.
  assert record['evaluations'] == 1


def test_a_measured_step_has_its_spread_and_no_second_run(tmp_path, measuring):
  """Without edges, the ordered step was another run of the same step."""
  record = _run(tmp_path, 'first')
  assert record['spread_s'] == .25
  assert record['step_time_s'] == record['ordered_step_time_s'] == 6.


def test_equal_placements_share_a_measured_step():
  """One of two equal placers was the best, by chance."""
  first = bench_results.cell(1., ordered_step_time_s=1., spread_s=.1)
  other = bench_results.cell(1.1, ordered_step_time_s=1.1, spread_s=.2,
                             placer='metis')
  found = cell_lib.with_step_of(other, first, other)
  assert found['step_time_s'] == found['ordered_step_time_s'] == 1.
  assert (found['spread_s'], found['placer']) == (.1, 'metis')
  assert not digests.differs(found)
  other['ordered_step_time_s'] = .9  # With control edges.
  ordered = {**other, 'ordered_step_time_s': .8}
  found = cell_lib.with_step_of(other, first, ordered)
  assert found['ordered_step_time_s'] == .8


def test_a_long_curve_is_thinned():

  class Recorder:
    evaluations = 5000
    curve = [(i, i * .1, 10. - i * 1e-3) for i in range(5000)]

  record = cell_lib._search(Recorder, 1., object())
  assert len(record['curve']) <= 501
  assert record['curve'][0] == [0, 0., 10.]
  assert record['curve'][-1][0] == 4999


def test_the_digest_sees_what_the_fingerprint_does_not():
  graph, cluster = graphs.chain(3), clusters.make_cluster(1)
  costs = clusters.FixedCosts(1.)
  loaded = _loaded(graph, cluster, costs)
  others = [
      dataclasses.replace(loaded, graph=graph.replace(flops=[1., 2., 3.])),
      dataclasses.replace(loaded, graph=graph.replace(groups=[0, 0, 1])),
      dataclasses.replace(loaded, cluster=clusters.make_cluster(2)),
      dataclasses.replace(loaded, cost_model=clusters.FixedCosts(2.)),
      dataclasses.replace(loaded, expert_devices=np.zeros(3, np.int32))
  ]
  digests = [item.digest for item in (loaded, *others)]
  assert len(set(digests)) == len(digests)


def test_a_loaded_task_survives_its_file(tmp_path):
  loaded = _loaded(graphs.random_graph(0, 50), clusters.make_cluster(1),
                   clusters.FixedCosts(1.))
  loading.save(tmp_path / 'task', loaded)
  again = loading.parse((tmp_path / 'task').read_bytes())
  assert again.digest == loaded.digest
  assert again.summary() == loaded.summary()
  assert not again.graph.edges.flags.writeable


def test_a_search_may_be_clocked_by_the_processor(tmp_path, monkeypatch):
  graph, cluster = graphs.chain(4), clusters.make_cluster(1)
  costs = clusters.FixedCosts(1.)
  clocks = []

  class Sleeps:

    def place(self, problem):
      clocks.append(problem.clock)
      time.sleep(.2)
      placement = placement_lib.Placement([0] * 4, cluster)
      problem.evaluator.evaluate(graph, placement)
      return placement

  monkeypatch.setattr(registry, 'create', lambda name: Sleeps())
  found = {}
  for name in clocks_lib.CLOCKS:
    found[name] = cell_lib.run(_loaded(graph, cluster, costs),
                               settings_lib.Settings(clock=name), 'sleeps',
                               simulator.Simulator(cluster, costs),
                               tmp_path / f'{name}.json')
  assert clocks == [time.monotonic, clocks_lib.processor_s]
  wall, processor = (found[name] for name in clocks_lib.CLOCKS)
  assert wall['seconds'] >= .2 > processor['seconds']
  assert wall['curve'][0][1] >= .2 > processor['curve'][0][1]


def test_only_prices_that_take_seconds_look_at_the_clock():
  cluster = clusters.make_cluster(1)
  priced = simulator.Simulator(cluster)
  assert cell_lib._in_time(priced, 1.) is priced
  stopwatch = types.SimpleNamespace(cluster=cluster, simulated=False)
  assert isinstance(cell_lib._in_time(stopwatch, 1.),
                    deadline_evaluator.DeadlineEvaluator)
