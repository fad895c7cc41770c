"""The Chrome trace of a schedule that one can simulate in the head."""

import dataclasses
import json

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import op_families
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.reports import colors
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
  ops = [(e['name'], e['tid'], e['ts'], e['dur']) for e in _events(trace, 'X')
         if e['cat'] == 'MatMul']
  assert ops == [('a', 1, 0, 1e6), ('b', 2, 3e6, 1e6), ('c', 2, 2e6, 1e6),
                 ('d', 3, 0, 1e6)]


def test_tracks_are_accelerators_hosts_links_messages(trace):
  assert [e['args']['name'] for e in _events(trace, 'M', name='process_name')
         ] == ['test on test (simulated)']
  assert [(e['tid'], e['args']['name'])
          for e in _events(trace, 'M', name='thread_name')
         ] == [(1, 'GPU:0'), (2, 'GPU:1'), (3, 'CPU:0'), (4, 'GPU:0 -> GPU:1'),
               (5, 'messages')]


def test_viewers_are_told_the_order_and_all_is_in_one_process(trace):
  assert [(e['tid'], e['args']['sort_index'])
          for e in _events(trace, 'M', name='thread_sort_index')
         ] == [(i, i) for i in range(1, 6)]
  assert {event['pid'] for event in trace['traceEvents']} == {1}


def test_transfer_is_on_its_link(trace):
  transfer, = _events(trace, 'X', tid=4)
  assert (transfer['name'], transfer['ts'], transfer['dur']) == ('a', 1e6, 2e6)
  assert transfer['args'] == {'bytes': 100}


def test_message_is_in_a_row_of_its_own(trace):
  message, = _events(trace, 'X', tid=5)
  assert (message['name'], message['ts'], message['dur']) == ('1 message', 1e6,
                                                              1e6)
  assert message['args'] == {'count': 1, 'ops': ['a']}


def test_messages_that_overlap_are_folded():
  graph = graphs.make_graph([(0, 2), (1, 3)], 4)
  placement = placement_lib.Placement([1, 1, 2, 2], _CLUSTER)
  schedule = dataclasses.replace(_schedule(graph, placement),
                                 transfer_start_s=np.array([1., 1.5]),
                                 transfer_end_s=np.array([2., 2.5]))
  trace = timeline.chrome_trace(graph, schedule, placement)
  message, = _events(trace, 'X', cat='message')
  assert (message['name'], message['ts'], message['dur']) == ('2 messages', 1e6,
                                                              1.5e6)


def test_arrows_lead_from_producers_over_links_to_consumers(trace):
  arrows = [event for phase in 'stf' for event in _events(trace, phase)]
  assert [(e['tid'], e['ts']) for e in arrows] == [(1, 0), (4, 1e6), (2, 3e6)]
  assert len({event['id'] for event in arrows}) == 1


def test_arrows_end_at_the_first_consumer():
  graph = graphs.make_graph([(0, 1, 100), (0, 2, 100)], 3)
  placement = placement_lib.Placement([1, 2, 2], _CLUSTER)
  trace = timeline.chrome_trace(graph, _schedule(graph, placement), placement)
  arrow, = _events(trace, 'f')
  first, = [e for e in _events(trace, 'X', tid=2) if e['ts'] == arrow['ts']]
  assert first['name'] == graph.names[1]


def test_ops_of_a_family_have_one_colour():
  graph = graphs.make_graph(num_ops=3).replace(op_types=('MatMul', 'Conv2D',
                                                         'MatMul'))
  placement = placement_lib.Placement([1, 1, 1], _CLUSTER)
  trace = timeline.chrome_trace(graph, _schedule(graph, placement), placement)
  first, second, third = (e['cname'] for e in _events(trace, 'X'))
  assert first == third != second


def test_every_family_has_a_colour_of_its_own_in_traces():
  assert colors.FAMILIES.keys() == op_families.FAMILIES.keys()
  assert colors.TRACE_FAMILIES.keys() == op_families.FAMILIES.keys()
  assert len({*colors.TRACE_FAMILIES.values(),
              colors.TRACE_TRANSFER}) == len(op_families.FAMILIES) + 1


def test_memory_is_counted_per_pool(trace):
  assert [(e['name'], e['ts'], e['args']['bytes']) for e in _events(trace, 'C')
         ] == [('memory of CPU:0', 0, 0), ('memory of GPU:0 + GPU:1', 0, 100),
               ('memory of GPU:0 + GPU:1', 1e6, 200),
               ('memory of GPU:0 + GPU:1', 3e6, 100),
               ('memory of GPU:0 + GPU:1', 4e6, 0)]


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
  assert [(e['tid'], e['ts']) for e in _events(trace, 'X')] == [(3, 0), (4, 0),
                                                                (5, 0),
                                                                (3, 1e6)]
  assert [
      e['args']['name'] for e in _events(trace, 'M', name='thread_name')
  ] == ['GPU:0', 'GPU:1', 'CPU:0 slot 0', 'CPU:0 slot 1', 'CPU:0 slot 2']


def test_copying_of_devices_without_engines_is_shown():
  cluster = _cluster_with_slots_and_copies()
  placement = placement_lib.Placement([1, 2, 2, 0], cluster)
  trace = timeline.chrome_trace(_GRAPH, _schedule(_GRAPH, placement), placement)
  assert [(e['name'], e['tid'], e['ts'], e['dur'])
          for e in _events(trace, 'X', cat='copy')] == [('send a', 1, 1e6, 1e6),
                                                        ('receive a', 2, 4e6,
                                                         1e6)]


def test_workspace_is_in_the_memory():
  costs = clusters.FixedCosts(1.0, workspace=7)
  placement = placement_lib.Placement([0], _CLUSTER)
  graph = graphs.make_graph(num_ops=1)
  trace = timeline.chrome_trace(
      graph,
      simulator.Simulator(_CLUSTER, costs).schedule(graph, placement),
      placement)
  assert [(e['ts'], e['args']['bytes'])
          for e in _events(trace, 'C', name='memory of CPU:0')] == [(0, 7),
                                                                    (1e6, 0)]


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
    rows.setdefault(event['tid'], []).append(event)
  # Six links, and the messages.
  assert len(rows) == sum(d.slots for d in cluster.devices) + 7
  for events in rows.values():
    events.sort(key=lambda e: e['ts'])
    for first, second in zip(events, events[1:]):
      # In nanoseconds, as Perfetto has it, which drops what overlaps.
      assert round(second['ts'] * 1e3) >= (round(first['ts'] * 1e3)
                                           + round(first['dur'] * 1e3))


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


def test_an_op_that_works_on_the_host_is_drawn_there():
  """A GPU has no track for the slots of the host."""
  graph = graphs.make_graph([(0, 1, 100), (1, 2, 100)], 3)
  graph = graph.replace(io_bytes=np.full(3, 1e6),
                        host_ops=frozenset(graph.names[1:2]))
  placement = placement_lib.Placement([1, 1, 1], _CLUSTER)
  trace = timeline.chrome_trace(graph, _schedule(graph, placement), placement)
  tracks = {
      e['tid']: e['args']['name']
      for e in _events(trace, 'M', name='thread_name')
  }
  [op] = _events(trace, 'X', name=graph.label(1), cat=graph.op_types[1])
  assert tracks[op['tid']] == 'CPU:0'
