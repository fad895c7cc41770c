"""Tests of `place`, `load_plan` and `simulate`, on graphs in files."""

import copy
import dataclasses
import json
import pathlib
import pickle

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.api import comparing
from gdp_grappler.api import placing
from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.reports import units
from helpers import clusters
from helpers import graph_defs
from helpers import graphs

_GRAPH = pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb'
_CLUSTER = '2xP100'


@pytest.fixture(scope='module')
def placed():
  """A step placed by METIS."""
  return gdp_grappler.place(_GRAPH, _CLUSTER, placer='metis')


def test_five_lines_place_price_save_and_load(placed, tmp_path):
  placed.save(tmp_path / 'plan.json')
  again = gdp_grappler.load_plan(tmp_path / 'plan.json', _GRAPH)
  assert again.devices == placed.devices
  assert again.step_time_s == placed.step_time_s > 0
  assert set(placed.devices) == set(placed.graph.names)
  assert placed.speedup == (placed.on_one_device.step_time_s
                            / placed.step_time_s)


@pytest.mark.parametrize('copied', [pickle.dumps, copy.deepcopy])
def test_a_plan_in_memory_is_not_copied(placed, copied):
  """Once the errors were about a lambda and about addresses in memory."""
  with pytest.raises(errors.PlanError, match='Save it .* by .*load_plan'):
    copied(placed)


def test_simulate_is_what_the_plan_says(placed, tmp_path):
  placed.save(tmp_path / 'plan.json')
  price = gdp_grappler.simulate(str(_GRAPH), tmp_path / 'plan.json')
  assert price.fifo_s == placed.fifo.step_time_s
  assert price.order == 'fifo'


def test_a_cluster_may_be_an_object():
  placed = gdp_grappler.place(_GRAPH, presets.preset(_CLUSTER),
                              placer='single_device')
  assert placed.step_time_s == pytest.approx(placed.on_one_device.step_time_s)
  assert placed.speedup == pytest.approx(1)


def test_a_map_of_layers_has_the_baseline_of_other_plans(placed, tmp_path):
  """Once a step was '2.07x as fast', and by a map of layers '0.11x'."""
  mapped = gdp_grappler.place(_GRAPH, _CLUSTER, plan={'dense': 'GPU:1'})
  mapped.save(tmp_path / 'plan.json')
  for plan in (mapped, gdp_grappler.load_plan(tmp_path / 'plan.json', _GRAPH)):
    assert plan.graph.may_round and not placed.graph.may_round
    assert (plan.on_one_device.step_time_s == pytest.approx(
        placed.on_one_device.step_time_s))
  rounds = gdp_grappler.place(_GRAPH, _CLUSTER, plan={'dense': 'GPU:1'},
                              may_round=True)
  assert rounds.where_alone == 'the CPU'


def test_a_map_of_layers_is_a_plan(placed):
  scope = placed.graph.names[placed.graph.num_ops // 2].split('/')[0]
  mapped = gdp_grappler.place(_GRAPH, _CLUSTER, plan={scope: 'GPU:1'})
  assert mapped.placed_by == 'a map of layers'
  assert mapped.placement.counts()['GPU:1'] > 0


def test_a_graph_def_is_written_with_devices(placed, tmp_path):
  placed.save(tmp_path / 'placed.pb')
  written = graph_pb2.GraphDef.FromString((tmp_path / 'placed.pb').read_bytes())
  for node in written.node:
    if node.name in placed.devices:
      assert node.device.endswith(placed.devices[node.name])


def test_the_order_is_in_the_plan_where_it_pays():
  ordered = gdp_grappler.place(_GRAPH, _CLUSTER, placer='random',
                               order='critical_path')
  fifo = gdp_grappler.place(_GRAPH, _CLUSTER, placer='random')
  assert fifo.placement.priorities is None
  assert (ordered.placement.priorities
          is not None) == (ordered.step_time_s < ordered.fifo.step_time_s)


@pytest.fixture(name='searches')
def _searches(monkeypatch):
  """A list of the configurations of searches for control edges."""
  found, search = [], control_edges.control_edges

  def noted(graph, placement, simulator, config=control_edges.OrderConfig()):
    found.append(config)
    return search(graph, placement, simulator, config)

  monkeypatch.setattr(control_edges, 'control_edges', noted)
  return found


def test_an_order_is_searched_within_the_time_budget(searches, tmp_path):
  placed = gdp_grappler.place(_GRAPH, _CLUSTER, placer='single_device',
                              order='critical_path', time_budget_s=1000)
  placed.save(tmp_path / 'plan.json')
  gdp_grappler.place(_GRAPH, _CLUSTER, plan=tmp_path / 'plan.json',
                     order='critical_path', time_budget_s=1000)
  assert searches and all(0 < config.max_s <= 1000 for config in searches)


def test_no_order_is_searched_when_the_time_is_over(searches):
  placed = gdp_grappler.place(_GRAPH, _CLUSTER, placer='random',
                              order='critical_path', time_budget_s=1e-9)
  assert not searches and placed.placement.priorities is None


def test_each_order_is_priced_once(searches):
  placed = gdp_grappler.place(_GRAPH, _CLUSTER, placer='random')
  placed.summary()
  placed.to_json()
  assert not searches
  assert placed.price() is placed.price('fifo')
  placed.price('critical_path')
  assert placed.price('critical_path') is placed.price('critical_path')
  assert len(searches) == 2


def test_a_table_without_an_order_is_that_of_its_price(placed):
  devices = placed.price().to_json(placed.graph)['devices']
  for line, device in zip(placed.summary().splitlines()[4:], devices):
    assert f'{device["ops"]}' in line and units.ms(device['busy_s']) in line


def test_all_that_is_said_is_json(placed):
  fields = json.loads(placed.to_json())
  assert fields['devices'] == placed.devices
  assert fields['step_time_s'] == placed.step_time_s
  assert fields['simulated'] and fields['fits']
  assert sum(fields['ops'].values()) == placed.graph.num_ops


def test_a_summary_fits_a_terminal(placed, capsys):
  placed.show()
  out = capsys.readouterr().out
  assert out == placed.summary() + '\n'
  assert max(map(len, out.splitlines())) <= 80
  assert 'as fast as on one device' in out and 'GPU:1' in out
  assert repr(placed).startswith('<PlacedStep dense_train_step: ')


def test_a_notebook_shows_names_as_text(placed):
  page = placed._repr_html_()
  assert '<table>' in page and 'GPU:1' in page
  hostile = graphs.chain(3, name='<script>alert(1)</script>')
  assert '<script>' not in gdp_grappler.PlacedStep(
      None, _Step(hostile),
      placement_lib.Placement(np.array([1, 1, 2]), clusters.make_cluster(2)),
      '<b>')._repr_html_()


class _Step:
  """Stands for the step of a graph on two GPUs."""

  def __init__(self, graph):
    from gdp_grappler.placers import step
    made = step.Step(graph, clusters.make_cluster(2))
    self.graph, self.cluster, self.simulator = (made.graph, made.cluster,
                                                made.simulator)
    self.source = None


@pytest.mark.parametrize(
    'arguments, said',
    [
        ({'placer': 'metos'}, 'Did you mean "metis"?'),
        ({'order': 'lifo'}, 'Unknown order "lifo"'),
        ({'placer': None}, 'placer is None; give a name'),
        # Once these texts counted as True.
        ({'may_round': 'false'}, "may_round is 'false'; give True or False"),
        ({'repeatable': 'no'}, "repeatable is 'no'; give True or False"),
        ({'whole_graph': 1}, 'whole_graph is 1; give True or False'),
        ({'tell': 3}, 'tell is 3; give a function'),
        ({'plan': 'p.json', 'placer': 'metis'}, 'takes the place of a placer'),
        # Once the policy was ignored.
        ({'placer': 'metis', 'policy': 'p'}, '"metis" uses no network'),
        ({'plan': 'none.json'}, 'Cannot read plan none.json'),
        ({'plan': {'nobody': 'GPU:0'}
         }, 'The map of layers is not for .* no op is '
         'in "nobody"'),
        ({'max_memory': {'GPU:0': 'much'}}, 'max_memory: '),
        ({'max_memory': 'GPU=1kB'}, 'does not fit|exceeds|needs'),
        ({'signature': ()}, 'A signature of tensors is for a tf.function'),
    ])
def test_bad_wishes_are_refused(arguments, said):
  with pytest.raises(errors.GdpError, match=said):
    gdp_grappler.place(_GRAPH, _CLUSTER, **arguments)


@pytest.mark.parametrize('graph', [3, None, object(), {}])
def test_what_is_no_graph_is_refused(graph):
  with pytest.raises(errors.InvalidGraphError, match='is not a graph. Give'):
    gdp_grappler.place(graph, _CLUSTER)


@pytest.mark.parametrize('signature', [np.zeros(3), 3.])
def test_a_signature_that_is_no_tuple(signature):
  """Once an array was asked for its truth value."""
  function = tf.function(lambda x: x * 2)
  with pytest.raises(errors.InvalidGraphError,
                     match=r'signature is .*Give signature=\('):
    gdp_grappler.place(function, _CLUSTER, signature=signature)


def test_other_endings_are_refused(placed, tmp_path):
  with pytest.raises(errors.GdpError, match='Cannot tell what to write'):
    placed.save(tmp_path / 'plan.yaml')


def test_costs_alone_have_no_graph_def(tmp_path):
  (tmp_path / 'costs.pbtxt').write_text(
      'node { name: "a" id: 1 output_info { size: 8 } compute_cost: 3000 }')
  placed = gdp_grappler.place(tmp_path / 'costs.pbtxt', _CLUSTER,
                              placer='single_device')
  with pytest.raises(errors.GdpError, match='no TensorFlow ops'):
    placed.save(tmp_path / 'placed.pb')


def test_what_breaks_rules_is_refused_by_name():
  cluster = clusters.make_cluster(2)
  graph = graphs.chain(3, groups=[0, 0, 1])
  good = placement_lib.Placement(np.array([1, 1, 2]), cluster)
  placing.refuse_illegal(good, graph, 'It', 'Try again.')
  bad = placement_lib.Placement(np.array([1, 2, 2]), cluster)
  with pytest.raises(errors.InfeasiblePlacementError) as error:
    placing.refuse_illegal(bad, graph, 'It', 'Try again.')
  assert 'It breaks 1 rule of graph "test"' in str(error.value)
  assert str(error.value).endswith('Try again.')


@pytest.mark.parametrize('cluster, may_round, called',
                         [('2xP100', True, 'the CPU'),
                          ('2xP100', False, 'one device'),
                          ('cpu', False, 'one device')])
def test_the_best_single_device_is_called_by_what_it_is(cluster, may_round,
                                                        called):
  # The graph is so small that launches on a GPU do not pay.
  placed = gdp_grappler.place(_GRAPH, cluster, placer='single_device',
                              may_round=may_round)
  assert placed.where_alone == called


def test_a_cpu_that_needs_a_gpu_is_no_baseline():
  """Once a step 'on the CPU', the baseline, had half of its ops on a GPU.

  No GPU had room for the whole step, but the CPU and a GPU together had.
  """
  cluster = clusters.make_cluster(2, memory_bytes=400)
  graph = graphs.chain(3, param_bytes=[100] * 3, allowed_types=[[1, 1], [0, 1],
                                                                [1, 1]])
  step = step_lib.Step(graph, cluster, None, clusters.FixedCosts(1e-3))
  mixed = registry.create('single_device').place(step.problem())
  assert mixed.devices.tolist() == [0, 1, 0]  # The mix fits.
  placed = gdp_grappler.PlacedStep(
      None, step, placement_lib.Placement(np.array([1, 1, 2]), cluster),
      'metis')
  assert placed.fits and not placed.on_one_device.valid
  assert placed.speedup == float('inf')
  assert 'no single device has the memory for it' in placed.summary()


def test_a_map_that_names_the_cpu_is_obeyed_and_says_what_it_rounds(tmp_path):
  """Once the layer's variable and its update stayed on the GPU."""
  path, told = tmp_path / 'map.json', []
  path.write_text('{"dense": "CPU:0"}')
  placed = gdp_grappler.place(_GRAPH, '2xP100', plan=path, tell=told.append)
  graph = placed.graph
  by_scope = {
      placed.devices[name] for name in graph.names
      if '/dense/' in f'/{layer_map.bare_name(name)}'
  }
  assert by_scope == {'CPU:0'} and 'GPU:0' in placed.devices.values()
  assert any('round differently' in line for line in told)
  assert any(
      'in no layer of the map, which are where TensorFlow puts them' in line
      for line in told)


def test_a_map_names_no_cluster(tmp_path):
  path = tmp_path / 'map.json'
  path.write_text('{"dense": "GPU:0"}')
  with pytest.raises(errors.PlanError, match='names no cluster. Give one'):
    gdp_grappler.load_plan(path, _GRAPH)
  price = gdp_grappler.simulate(_GRAPH, path, '2xP100')
  assert price.fifo_s > 0


@pytest.mark.parametrize('count', ['big', 0, 2.5, True, None])
@pytest.mark.parametrize('name', ['batch_size', 'trip_count'])
def test_a_count_is_a_whole_number_of_at_least_one(name, count):
  """A trip count of 0 was refused as an option only."""
  with pytest.raises(errors.GdpError, match=f'{name} is .*; give a whole'):
    gdp_grappler.place(_GRAPH, _CLUSTER, **{name: count})


def test_layers_and_none_get_the_error_of_a_file():
  """Once both calls ended with a TypeError of `os.fspath`."""
  for use in (gdp_grappler.load_plan,
              lambda plan, graph: gdp_grappler.simulate(graph, plan)):
    with pytest.raises(
        errors.PlanError, match='plan is a map of layers, which '
        'names no cluster. Give one'):
      use({'dense': 'GPU:0'}, _GRAPH)
    with pytest.raises(errors.GdpError, match='plan is None; give a plan file'):
      use(None, _GRAPH)
  assert gdp_grappler.load_plan({'dense': 'GPU:0'}, _GRAPH, _CLUSTER).layers


def test_simulate_refuses_an_unknown_order_before_it_reads_the_graph():
  """Once `simulate` read the graph, and then raised a ValueError."""
  with pytest.raises(errors.GdpError, match='Unknown order "lifo"'):
    gdp_grappler.simulate('none.pb', 'none.json', order='lifo')


def test_load_plan_and_compare_refuse_a_text_for_a_switch():
  with pytest.raises(errors.GdpError, match='may_round is .*give True or'):
    gdp_grappler.load_plan({'a': 'GPU:0'}, 'none.pb', _CLUSTER,
                           may_round='false')
  with pytest.raises(errors.GdpError, match='repeatable is .*give True or'):
    gdp_grappler.compare('none.pb', _CLUSTER, repeatable='false')


def test_steps_of_0_seconds_are_as_fast_as_each_other(tmp_path, capsys):
  """Once a graph without seconds ended with a ZeroDivisionError."""
  path = tmp_path / 'graph.json'
  path.write_text(json.dumps({'nodes': [{'name': 'a', 'seconds': 0}]}))
  compared = gdp_grappler.compare(path, _CLUSTER, ['single_device'])
  assert compared.best.step_time_s == 0 and compared.best.speedup == 1
  compared.show()
  compared.best.show()
  assert '1.00x as fast' in capsys.readouterr().out


def test_only_the_other_step_takes_seconds(placed):
  """Once the speed-up was a ZeroDivisionError. JSON has no infinity."""
  free = _free(placed)
  assert free.speedup == float('inf')
  compared = comparing.Comparison({'free': free}, {})
  assert json.loads(compared.to_json())['placers'][0]['speedup'] is None


def _free(placed):
  """A step of 0 s, whose best single device takes some seconds."""
  free = dataclasses.replace(placed)
  vars(free).update(step_time_s=0.)
  return free


def test_rounding_that_a_plan_allows_breaks_no_rule(tmp_path):
  """Once such a plan lost the requests by tf.device."""

  def make():
    import tensorflow as tf
    ones = tf.compat.v1.placeholder(tf.float32, [8, 8])
    with tf.device('/GPU:1'):
      product = tf.matmul(ones, ones)
    tf.exp(product)

  graph, plan, told = tmp_path / 'graph.pb', tmp_path / 'plan.json', []
  graph.write_bytes(graph_defs.built(make).SerializeToString())
  gdp_grappler.place(graph, _CLUSTER, plan={'MatMul': 'GPU:1',
                                            'Exp': 'CPU:0'}).save(plan)
  loaded = gdp_grappler.load_plan(plan, graph, tell=told.append)
  assert loaded.devices['Exp'] == 'CPU:0' and loaded.graph.may_round
  assert loaded.graph.user_pins.any()
  assert not any('overrides' in line for line in told)
