"""The Chrome trace of a schedule that one can simulate in the head."""

import json

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import simulator
from gdp_grappler.reports import timeline
from tests.helpers import clusters
from tests.helpers import graphs

# Seconds: op0 0-1 on GPU:0; its tensor 1-3, a message 1-2; op1 3-4, op2 2-3 on
# GPU:1. op3 0-1 on the CPU.
_GRAPH = graphs.make_graph([(0, 1, 100), (0, 2)], 4, names=list('abcd'))
_CLUSTER = clusters.make_cluster(memory=['c', 'g', 'g'])
_PLACEMENT = placement_lib.Placement([1, 2, 2, 0], _CLUSTER)


def _schedule(graph=_GRAPH, placement=_PLACEMENT):
  return simulator.Simulator(
      placement.cluster, clusters.FixedCosts(1.0)).schedule(graph, placement)


@pytest.fixture(name='trace')
def _trace(tmp_path):
  path = tmp_path / 'trace.json'
  timeline.write_chrome_trace(path, _GRAPH, _schedule(), _PLACEMENT)
  return json.loads(path.read_text())


def _events(trace, phase, **fields):
  return [event for event in trace['traceEvents'] if event['ph'] == phase
          and all(event[key] == value for key, value in fields.items())]


def test_every_op_is_on_its_device_in_microseconds(trace):
  ops = [(e['name'], e['pid'], e['ts'], e['dur'])
         for e in _events(trace, 'X') if e['cat'] == 'MatMul']
  assert ops == [('a', 1, 0, 1e6), ('b', 2, 3e6, 1e6), ('c', 2, 2e6, 1e6),
                 ('d', 0, 0, 1e6)]


def test_devices_and_links_have_names(trace):
  names = [(e['name'], e['pid'], e['args']['name'])
           for e in _events(trace, 'M') if 'name' in e['args']]
  assert names == [
      ('process_name', 0, 'CPU:0 (simulated)'), ('thread_name', 0, 'compute'),
      ('process_name', 1, 'GPU:0 (simulated)'), ('thread_name', 1, 'compute'),
      ('process_name', 2, 'GPU:1 (simulated)'), ('thread_name', 2, 'compute'),
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
          for e in _events(trace, 'C')] == [
              ('memory of CPU:0', 0, 0, 0),
              ('memory of GPU:0 + GPU:1', 1, 0, 100),
              ('memory of GPU:0 + GPU:1', 1, 1e6, 200),
              ('memory of GPU:0 + GPU:1', 1, 3e6, 100),
              ('memory of GPU:0 + GPU:1', 1, 4e6, 0)]


def test_says_that_it_is_simulated_and_where(trace):
  assert trace['otherData']['simulated'] is True
  assert trace['otherData']['cluster'] == 'test'
  assert trace['otherData']['step_time_s'] == 4
  assert trace['otherData']['devices'] == list(_CLUSTER.device_names)


def test_rows_never_overlap_on_a_large_graph():
  graph = graphs.random_graph(1, 300)
  placement = placement_lib.from_groups(
      graph, [g % 3 for g in range(graph.num_groups)], _CLUSTER)
  trace = timeline.chrome_trace(
      graph, _schedule(graph, placement), placement)
  rows = {}
  for event in _events(trace, 'X'):
    rows.setdefault((event['pid'], event['tid']), []).append(event)
  assert len(rows) == 3 + 6
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
