"""Tests of `gdp place --order` and `gdp simulate`."""

import dataclasses
import json
import pathlib
import re

import numpy as np
import pytest
from tensorflow.core.framework import graph_pb2

from gdp_grappler.bin import gdp
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import plan
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import registry
from helpers import clusters
from helpers import problems

_GRAPH = str(pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb')


@pytest.fixture(scope='module')
def graph():
  return graph_def_io.read(sources.load(_GRAPH))


@pytest.fixture(scope='module')
def cluster():
  return presets.preset('2xP100')


@pytest.fixture(scope='module')
def spread(graph, cluster):
  """Random placements."""
  return [
      registry.create('random').place(problems.make(graph, cluster, seed=seed))
      for seed in range(40)
  ]


@pytest.fixture(scope='module')
def saved(tmp_path_factory, graph, spread, cluster):
  """A plan in which order gains much."""
  simulator = simulator_lib.Simulator(cluster)
  found = [control_edges.control_edges(graph, p, simulator) for p in spread]
  gain = [order.with_edges_s / order.fifo_s for order in found]
  path = str(tmp_path_factory.mktemp('plans') / 'gains.json')
  plan.save(path, graph, spread[np.argmin(gain)])
  return {'gains': path}


def _run(*arguments):
  return gdp.run([*map(str, arguments), '--quiet'])


def test_simulate_takes_the_cluster_of_the_plan_and_prints_both(saved, capsys):
  assert _run('simulate', _GRAPH, f'--plan={saved["gains"]}') == 0
  out = capsys.readouterr().out
  assert 'on 2xP100' in out
  assert ' ms first in, first out, ' in out
  assert ' ms with control edges (simulated)' in out
  peaks = out.split('peak memory with --order=fifo: ')[1]
  assert re.fullmatch(
      r'CPU:0 [1-9][\d.]* \w?B, GPU:0 [1-9][\d.]* \w?B, '
      r'GPU:1 [1-9][\d.]* \w?B\n', peaks)


def test_simulate_names_plan_and_ops_that_break_a_rule(saved, graph, tmp_path,
                                                       capsys):
  path = tmp_path / 'plan.json'
  fields = json.loads(pathlib.Path(saved['gains']).read_text())
  group = np.flatnonzero(graph.groups == np.bincount(graph.groups).argmax())
  for op, device in zip(group[:2], ('GPU:0', 'GPU:1')):
    fields['devices'][graph.names[op]] = device
  path.write_text(json.dumps(fields))
  assert _run('simulate', _GRAPH, f'--plan={path}') == 2
  error = capsys.readouterr().err
  assert f'"devices" of plan {path} breaks' in error
  assert 'Nothing was written' not in error and error.count('\n') == 1
  assert all(f"[{graph.names[op]}]" in error for op in group[:2])


def test_simulate_looks_for_the_folder_of_the_trace_first(tmp_path, capsys):
  assert _run('simulate', 'no_graph.pb', '--plan=no_plan.json',
              f'--trace={tmp_path}/none/t.json') == 2
  assert 'none/t.json: its folder does not exist' in capsys.readouterr().err
  assert _run('simulate', 'no_graph.pb', '--plan=no_plan.json',
              f'--trace={tmp_path}') == 2
  assert 'it is a folder' in capsys.readouterr().err


def test_simulate_as_json(saved, graph, cluster, capsys):
  assert _run('simulate', _GRAPH, f'--plan={saved["gains"]}', '--json') == 0
  fields = json.loads(capsys.readouterr().out)
  simulator = simulator_lib.Simulator(cluster)
  placement = plan.load(saved['gains'], graph)
  assert fields['step_time_s'] == simulator.evaluate(graph,
                                                     placement).step_time_s
  assert fields['ordered_step_time_s'] < fields['step_time_s']
  sent = simulator.schedule(graph, placement).transfer_tensors
  sent = sent[sent >= 0]
  assert fields['transfers']['tensors'] == len(sent)
  assert fields['transfers']['bytes'] == graph.tensor_bytes[sent].sum()
  assert len(fields['devices']) == 3 and not fields['violations']
  assert max(fields['lower_bounds'].values()) <= fields['ordered_step_time_s']


@pytest.mark.parametrize('order, key',
                         [('fifo', 'step_time_s'),
                          ('critical_path', 'ordered_step_time_s')])
def test_simulate_draws_the_order_asked_for(saved, tmp_path, capsys, order,
                                            key):
  trace = tmp_path / 'trace.json'
  assert _run('simulate', _GRAPH, f'--plan={saved["gains"]}', '--json',
              f'--order={order}', f'--trace={trace}') == 0
  fields = json.loads(capsys.readouterr().out)
  drawn = json.loads(trace.read_text())['otherData']['step_time_s']
  assert drawn == fields[key] and fields['order'] == order


def test_simulate_names_file_and_op_of_a_wrong_plan(saved, tmp_path, capsys):
  path = tmp_path / 'plan.json'
  fields = json.loads(pathlib.Path(saved['gains']).read_text())
  fields['devices'] = {
      'nobodys_op' if i == 3 else op: device
      for i, (op, device) in enumerate(fields['devices'].items())
  }
  path.write_text(json.dumps(fields))
  assert _run('simulate', _GRAPH, f'--plan={path}') == 2
  error = capsys.readouterr().err
  assert str(path) in error and '"nobodys_op"' in error
  assert error.count('\n') == 1


def test_place_writes_priorities_into_a_plan(saved, graph, tmp_path, capsys):
  path = str(tmp_path / 'ordered.json')
  assert _run('place', _GRAPH, '--cluster=2xP100', f'--plan={saved["gains"]}',
              '--order=critical_path', f'--output={path}') == 0
  assert '; ordered: ' in capsys.readouterr().out
  ordered = plan.load(path, graph)
  assert ordered.priorities is not None
  np.testing.assert_array_equal(ordered.devices,
                                plan.load(saved['gains'], graph).devices)
  assert _run('simulate', _GRAPH, f'--plan={path}', '--json') == 0
  assert json.loads(capsys.readouterr().out)['order'] == 'critical_path'
  again = str(tmp_path / 'again.json')
  for order, kept in (((), True), (('--order=fifo',), False)):
    assert _run('place', _GRAPH, '--cluster=2xP100', f'--plan={path}', *order,
                f'--output={again}') == 0
    assert (plan.load(again, graph).priorities is not None) == kept


def test_place_says_where_order_does_not_pay(spread, graph, cluster, tmp_path,
                                             capsys):
  waiting = clusters.synchronous(cluster)
  simulator = simulator_lib.Simulator(waiting)
  found = [dataclasses.replace(p, cluster=waiting) for p in spread]
  orders = [control_edges.control_edges(graph, p, simulator) for p in found]
  loses = found[np.argmax([o.with_edges_s / o.fifo_s for o in orders])]
  before, path, machine = (
      str(tmp_path / f'{name}.json') for name in ('before', 'plan', 'cluster'))
  plan.save(before, graph, loses)
  cluster_file.write(machine, waiting)
  assert _run('place', _GRAPH, f'--cluster={machine}', f'--plan={before}',
              '--order=critical_path', f'--output={path}') == 0
  assert 'no control edges are predicted to pay' in capsys.readouterr().out
  assert plan.load(path, graph).priorities is None


def test_place_writes_control_edges_into_a_graph(saved, tmp_path, capsys):
  counts = []
  for order in ('fifo', 'critical_path'):
    path = tmp_path / f'{order}.pb'
    assert _run('place', _GRAPH, '--cluster=2xP100', f'--plan={saved["gains"]}',
                f'--order={order}', f'--output={path}') == 0
    written = graph_pb2.GraphDef.FromString(path.read_bytes())
    counts.append(
        sum(
            text.startswith('^') for node in written.node
            for text in node.input))
  out = capsys.readouterr().out
  assert counts[1] > counts[0]
  assert f'ordered by {counts[1] - counts[0]} control edge' in out


def test_priorities_of_a_plan_survive_the_way_to_the_simulator(
    saved, graph, cluster, tmp_path, capsys):
  path = str(tmp_path / 'own.json')
  placement = plan.load(saved['gains'], graph)
  own = dataclasses.replace(
      placement, priorities=np.random.default_rng(0).random(graph.num_ops))
  plan.save(path, graph, own)
  assert _run('simulate', _GRAPH, f'--plan={path}', '--json') == 0
  fields = json.loads(capsys.readouterr().out)
  simulator = simulator_lib.Simulator(cluster)
  assert fields['ordered_step_time_s'] == control_edges.evaluate(
      graph, own, simulator, simulator).step_time_s
