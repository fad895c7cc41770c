"""Tests of what a page shows, on a step computed by hand; and of colours."""

import json

import numpy as np
import pytest

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import price as price_lib
from gdp_grappler.evaluation.costs import op_families
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph.legality import reasons as reasons_lib
from gdp_grappler.reports import colors
from gdp_grappler.reports import page_data
from helpers import clusters
from helpers import graphs


def _data(graph, placement, seconds=1.):
  cluster = clusters.make_cluster(2)
  simulator = simulator_lib.Simulator(cluster, clusters.FixedCosts(seconds))
  if not isinstance(placement, placement_lib.Placement):
    placement = placement_lib.Placement(np.array(placement), cluster)
  reasons = reasons_lib.Reasons(graph,
                                constraints.suitable_devices(graph, cluster),
                                cluster.device_labels)
  run = page_data.PageRun('made', price_lib.price(graph, placement, simulator))
  return page_data.page_data(graph, [run], reasons, 'Good.')


def test_a_step_of_three_ops():
  data = _data(graphs.chain(3), [1, 1, 2])
  run, = data['runs']
  assert run['stepUs'] == 5e6
  assert (run['start'], run['duration']) == ([0, 1e6, 4e6], [1e6] * 3)
  assert run['transfers'] == {
      'op': [1], 'source': [1], 'target': [2], 'bytes': [100], 'start': [2e6],
      'duration': [2e6]
  }
  assert run['work']['computing'] == [0, 2e6, 1e6]
  assert run['work']['waiting'] == [5e6, 3e6, 4e6]
  assert run['critical'] == [0, 1, 2]
  assert [(row['where'], row['ops']) for row in run['chain']] == [([1], 2),
                                                                  ([1, 2], 1),
                                                                  ([2], 1)]
  assert run['cuts'] == [{
      'op': 1, 'source': 1, 'target': 2, 'bytes': 100, 'us': 2e6
  }]
  assert json.loads(json.dumps(data, allow_nan=False)) == data


@pytest.mark.parametrize('seconds, axis', [(1., ('seconds', 1e6)),
                                           (.2, ('milliseconds', 1e3)),
                                           (1e-4, ('microseconds', 1.))])
def test_axes_have_the_unit_of_the_step(seconds, axis):
  # 100 ms stood at an axis of "100,000 microseconds".
  data = _data(graphs.chain(2), [1, 1], seconds)
  assert data['axis'] == dict(zip(('unit', 'us'), axis))


def test_memory_ends_with_the_step_and_keeps_its_peak():
  data = _data(graphs.chain(5000), [1] * 5000)
  run, = data['runs']
  curve = run['memory'][1]
  assert len(curve['at']) == len(curve['bytes']) <= 1502
  assert max(curve['bytes']) == run['peaks'][1]
  assert curve['at'][-1] == run['stepUs']


def test_messages_are_no_transfers():
  assert _data(graphs.make_graph([(0, 1)]),
               [1, 2])['runs'][0]['transfers']['op'] == []


def test_the_chain_follows_control_edges():
  """The chain once ended at an op that waited for a control edge."""
  graph = graphs.make_graph([], 2)
  placement = placement_lib.Placement([1, 2], clusters.make_cluster(2))
  edges = control_edges.Order(np.array([[0, 1]], np.int32), 1., 0., 0.,
                              np.array([1., 0.]), control_edges.OrderConfig(),
                              complete=True)
  run, = _data(graph, control_edges.attach(placement, edges))['runs']
  assert run['start'] == [0, 2e6]  # A second for op 0, one for the message.
  assert run['critical'] == [0, 1]


def test_every_family_has_a_color_of_its_own():
  assert set(colors.FAMILIES) == set(op_families.FAMILIES)
  assert len(set(colors.FAMILIES.values())) == len(colors.FAMILIES)
  assert colors.of_device(0) != colors.of_device(1)


def test_tables_say_what_they_leave_out(monkeypatch):
  """A table of 400 of 5000 rows looked complete."""
  graph, devices = graphs.chain(9), [1, 2] * 4 + [1]
  run, = _data(graph, devices)['runs']
  assert len(run['chain']) == 17 and len(run['cuts']) == 8
  assert (run['chainPart'], run['cutsPart']) == ('', '')
  monkeypatch.setattr(page_data, '_MOST_STRETCHES', 16)
  monkeypatch.setattr(page_data, '_MOST_CUTS', 7)
  run, = _data(graph, devices)['runs']
  assert len(run['chain']) == 16 and len(run['cuts']) == 7
  assert run['chainPart'] == 'The table has only the 16 longest of 17 rows.'
  assert run['cutsPart'] == 'The table has only the 7 largest of 8 tensors.'


def test_work_of_the_host_for_a_gpu_says_why():
  """Such an op was on CPU:0 on the page, and on GPU:0 in the plan."""
  graph = graphs.chain(3, io_bytes=[1, 1e8, 1e8])
  data = _data(graph.replace(host_ops=frozenset(graph.names[:2])), [1, 1, 1])
  ops = data['ops']
  tells = ['a thread of the host' in ops['whys'][why] for why in ops['why']]
  assert tells == [False, True, False]
  assert data['runs'][0]['device'] == [1, 0, 1]
