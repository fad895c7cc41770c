"""The Chrome trace of a schedule that one can simulate in the head."""

import dataclasses
import json

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.reports import timeline
from helpers import clusters
from helpers import graphs

# Seconds: op0 0-1 on GPU:0; its tensor 1-3, a message 1-2; op1 3-4, op2 2-3 on
# GPU:1. op3 0-1 on the CPU.
_GRAPH = graphs.make_graph([(0, 1, 100), (0, 2)], 4, names=list('abcd'))
_CLUSTER = clusters.make_cluster(memory=['c', 'g', 'g'])
_PLACEMENT = placement_lib.Placement([1, 2, 2, 0], _CLUSTER)


def _schedule(graph=_GRAPH, placement=_PLACEMENT):
  return simulator.Simulator(placement.cluster,
                             clusters.FixedCosts(1.0)).schedule(
                                 graph, placement)


@pytest.fixture(name='trace')
def _trace(tmp_path):
  path = tmp_path / 'trace.json'
  timeline.write_chrome_trace(path, _GRAPH, _schedule(), _PLACEMENT)
  return json.loads(path.read_text())


def _events(trace, phase, **fields):
  return [
      event for event in trace['traceEvents'] if event['ph'] == phase and all(
          event[key] == value for key, value in fields.items())
  ]


def test_every_op_is_on_its_device_in_microseconds(trace):
  ops = [(e['name'], e['pid'], e['ts'], e['dur']) for e in _events(trace, 'X')
         if e['cat'] == 'MatMul']
  assert ops == [('a', 1, 0, 1e6), ('b', 2, 3e6, 1e6), ('c', 2, 2e6, 1e6),
                 ('d', 0, 0, 1e6)]


def test_devices_and_links_have_names(trace):
  names = [(e['name'], e['pid'], e['args']['name'])
           for e in _events(trace, 'M') if 'name' in e['args']]
  assert names == [('process_name', 0, 'CPU:0 (simulated)'),
                   ('thread_name', 0, 'compute'),
                   ('process_name', 1, 'GPU:0 (simulated)'),
                   ('thread_name', 1, 'compute'),
                   ('process_name', 2, 'GPU:1 (simulated)'),
                   ('thread_name', 2, 'compute'),
                   ('process_name', 3, 'links (simulated)'),
                   ('thread_name', 3, 'GPU:0 -> GPU:1')]


def test_transfer_is_on_its_link(trace):
  transfer, = _events(trace, 'X', pid=3)
  assert (transfer['name'], transfer['ts'], transfer['dur']) == ('a', 1e6, 2e6)
  assert transfer['args'] == {'bytes': 100}


def test_message_begins_and_ends(trace):
  begin, = _events(trace, 'b')
  end, = _events(trace, 'e')
  assert (begin['ts'], end['ts']) == (1e6, 2e6)
  assert begin['id'] == end['id']


def test_memory_is_counted_per_pool(trace):
  assert [(e['name'], e['pid'], e['ts'], e['args']['bytes'])
          for e in _events(trace, 'C')
         ] == [('memory of CPU:0', 0, 0, 0),
               ('memory of GPU:0 + GPU:1', 1, 0, 100),
               ('memory of GPU:0 + GPU:1', 1, 1e6, 200),
               ('memory of GPU:0 + GPU:1', 1, 3e6, 100),
               ('memory of GPU:0 + GPU:1', 1, 4e6, 0)]


def test_says_that_it_is_simulated_and_where(trace):
  assert trace['otherData']['simulated'] is True
  assert trace['otherData']['cluster'] == 'test'
  assert trace['otherData']['step_time_s'] == 4
  assert trace['otherData']['devices'] == list(_CLUSTER.device_names)


def _cluster_with_slots_and_copies():
  """Ops take 1 s, transfers of 100 bytes 2 s and 1 s on either side."""
  devices = [
      dataclasses.replace(device, slots=slots, copy_bytes_per_s=100.0)
      for device, slots in zip(_CLUSTER.devices, (3, 1, 2))
  ]
  return dataclasses.replace(_CLUSTER, devices=devices)


def test_ops_that_run_side_by_side_have_rows_of_their_own():
  cluster = _cluster_with_slots_and_copies()
  placement = placement_lib.Placement([0, 0, 0, 0], cluster)
  graph = graphs.make_graph(num_ops=4)
  trace = timeline.chrome_trace(graph, _schedule(graph, placement), placement)
  assert [(e['tid'], e['ts']) for e in _events(trace, 'X')] == [(0, 0), (1, 0),
                                                                (2, 0),
                                                                (0, 1e6)]
  assert [e['args']['name'] for e in _events(trace, 'M', name='thread_name')
         ] == ['compute 0', 'compute 1', 'compute 2', 'compute', 'compute']


def test_copying_of_devices_without_engines_is_shown():
  cluster = _cluster_with_slots_and_copies()
  placement = placement_lib.Placement([1, 2, 2, 0], cluster)
  trace = timeline.chrome_trace(_GRAPH, _schedule(_GRAPH, placement), placement)
  assert [(e['name'], e['pid'], e['tid'], e['ts'], e['dur'])
          for e in _events(trace, 'X', cat='copy')
         ] == [('send a', 1, 0, 1e6, 1e6), ('receive a', 2, 0, 4e6, 1e6)]


def test_workspace_is_in_the_memory():
  costs = clusters.FixedCosts(1.0, workspace=7)
  placement = placement_lib.Placement([0], _CLUSTER)
  graph = graphs.make_graph(num_ops=1)
  trace = timeline.chrome_trace(
      graph,
      simulator.Simulator(_CLUSTER, costs).schedule(graph, placement),
      placement)
  assert [(e['ts'], e['args']['bytes']) for e in _events(trace, 'C', pid=0)
         ] == [(0, 7), (1e6, 0)]


def test_order_and_executions_are_told():
  placement = placement_lib.Placement([0, 0], _CLUSTER, [1.5, -np.inf])
  graph = graphs.chain(2).replace(executions=[1, 8])
  trace = timeline.chrome_trace(graph, _schedule(graph, placement), placement)
  assert trace['otherData']['ordered'] is True
  first, second = (e['args'] for e in _events(trace, 'X'))
  assert (first['priority'], second['priority']) == ('1.5', '-inf')
  assert 'executions' not in first and second['executions'] == 8
  json.dumps(trace, allow_nan=False)


@pytest.mark.parametrize('cluster',
                         [_CLUSTER, _cluster_with_slots_and_copies()],
                         ids=['plain', 'slots'])
def test_rows_never_overlap_on_a_large_graph(cluster, tmp_path):
  graph = graphs.random_graph(1, 300)
  placement = placement_lib.from_groups(
      graph, [g % 3 for g in range(graph.num_groups)], cluster)
  path = tmp_path / 'trace.json'
  timeline.write_chrome_trace(path, graph, _schedule(graph, placement),
                              placement)
  rows = {}
  for event in _events(json.loads(path.read_text()), 'X'):
    rows.setdefault((event['pid'], event['tid']), []).append(event)
  assert len(rows) == sum(d.slots for d in cluster.devices) + 6
  for events in rows.values():
    events.sort(key=lambda e: e['ts'])
    for first, second in zip(events, events[1:]):
      assert second['ts'] >= (first['ts'] + first['dur']) * (1 - 1e-12)


def test_folder_that_does_not_exist(tmp_path):
  path = tmp_path / 'missing' / 'trace.json'
  with pytest.raises(errors.GdpError, match='No such file'):
    timeline.write_chrome_trace(path, _GRAPH, _schedule(), _PLACEMENT)


def test_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
  path = tmp_path / 'trace.json'
  path.write_text('old')

  def fail(*_):
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(timeline.os, 'replace', fail)
  with pytest.raises(errors.GdpError, match='No space left'):
    timeline.write_chrome_trace(path, _GRAPH, _schedule(), _PLACEMENT)
  assert [p.name for p in tmp_path.iterdir()] == ['trace.json']
  assert path.read_text() == 'old'


def test_schedule_of_another_graph():
  with pytest.raises(ValueError, match='2 ops, the schedule 4'):
    timeline.chrome_trace(graphs.chain(2), _schedule(), _PLACEMENT)
