"""Prices that the graph's own file gives, and where they hold."""

import dataclasses
import json

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import given_costs
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph.sources import origin
from helpers import clusters
from helpers import fresh

# CPU:0, GPU:0, GPU:1; ops wait for each other, which adds nothing to costs.
_MIXED = clusters.synchronous(presets.preset('haswell+1xP100+1xK40'))
_P100, _K40 = (device_figures.CARDS[name] for name in ('P100', 'K40'))


@pytest.fixture(name='load')
def _load(tmp_path):
  """Loads a graph of nodes and edges from a file."""

  def load(*nodes, edges=(), **fields):
    path = tmp_path / 'graph.json'
    path.write_text(
        json.dumps({'nodes': list(nodes), 'edges': list(edges), **fields}))
    return given_costs.load(origin.Origin(str(path)))

  return load


def _seconds(load, cluster=_MIXED, **node):
  graph, costs = load({'name': 'a', **node})
  return graph, costs.op_seconds(graph, cluster)[0].tolist()


def test_a_number_holds_everywhere(load):
  graph, seconds = _seconds(load, seconds=.5)
  assert seconds == [.5] * 3 and graph.allowed_types.all()


def test_the_narrowest_label_counts(load):
  full = _MIXED.devices[1].name
  _, seconds = _seconds(
      load, seconds={
          'CPU': 1, 'GPU': 2, 'haswell': 3, 'P100': 4, 'K40': 5, 'GPU:1': 6,
          full: 7
      })
  assert seconds == [3, 7, 6]


def test_names_of_types_cards_and_processors(load):
  graph, seconds = _seconds(load, seconds={'CPU': 1, 'P100': 4, 'K40': 5})
  assert seconds == [1, 4, 5] and graph.allowed_types.all()
  assert _seconds(load, seconds={'broadwell': 1, 'haswell': 2, 'GPU': 3},
                  cluster=presets.preset('broadwell+1xP100'))[1] == [1, 3]


@pytest.mark.parametrize('label', ['P100', 'GPU:0', _MIXED.devices[1].name])
def test_another_card_is_slower_by_its_arithmetic(load, label):
  graph, seconds = _seconds(load, seconds={label: 2})
  ratio = (_P100.peak_flops * _P100.efficiency) / (_K40.peak_flops
                                                   * _K40.efficiency)
  assert seconds[1:] == [2, pytest.approx(2 * ratio)]
  # Nothing is known of a CPU, so it cannot be there.
  assert graph.allowed_types.tolist() == [[False, True]]
  assert seconds[0] == pytest.approx(2 * ratio)


def test_another_card_is_slower_by_the_roofline_where_there_is_one(load):
  _, seconds = _seconds(load, seconds={'P100': 2}, op='Relu', io_bytes=1e12)
  assert seconds[2] / seconds[1] == pytest.approx(
      _P100.bandwidth_bytes_per_s / _K40.bandwidth_bytes_per_s, rel=1e-3)


def test_the_roofline_holds_where_no_seconds_do(load):
  graph, seconds = _seconds(load, op='MatMul', flops=1e12, seconds={'GPU': 3})
  assert graph.allowed_types.all() and seconds[1:] == [3, 3]
  assert seconds[0] == roofline.Roofline().op_seconds(graph, _MIXED)[0, 0]
  graph, bare = _seconds(load, op='MatMul', flops=1e12)
  assert bare == roofline.Roofline().op_seconds(graph, _MIXED)[0].tolist()
  _, empty = _seconds(load, flops=0)
  assert 0 < max(empty) < 1e-4


def test_workspace_is_the_files(load):
  graph, costs = load({'name': 'a', 'seconds': 1, 'workspace': 5},
                      {'name': 'b', 'seconds': 1})
  assert costs.workspace_bytes(graph, _MIXED).tolist() == [[5] * 3, [0] * 3]


def test_parts_of_the_graph_keep_their_costs(load):
  graph, costs = load(*({'name': n, 'seconds': i} for i, n in enumerate('abc')))
  fields = ('names', 'op_types', 'flops', 'io_bytes', 'param_bytes',
            'allowed_types', 'pins', 'user_pins', 'devices', 'executions',
            'stateful', 'variables', 'same_numbers')
  part = dataclasses.replace(
      graph, groups=[0, 1],
      **{field: [getattr(graph, field)[i] for i in (2, 0)] for field in fields})
  assert costs.op_seconds(part, _MIXED)[:, 0].tolist() == [2, 0]
  with pytest.raises(errors.GdpError, match='has no op "z"'):
    costs.op_seconds(graph.replace(names='zyx'), _MIXED)


@pytest.mark.parametrize('node, said', [
    (dict(seconds={'P10': 1}), 'node "a", field "seconds": "P10" is no device. '
     'Did you mean "P100"?'),
    (dict(seconds={'TPU:0': 1}), '"TPU:0" is no device'),
    (dict(seconds={'GPU': 1},
          device='CPU'), 'node "a", field "seconds": it has none for CPU'),
    (dict(seconds={'K40': 1}, gpu=False), 'it has none for CPU')
])
def test_labels_that_mean_nothing(load, node, said):
  with pytest.raises(errors.InvalidGraphError) as raised:
    load({'name': 'a', **node})
  assert said in str(raised.value)
  assert 'graph.json: ' in str(raised.value)


def test_a_device_that_the_cluster_lacks_prices_no_other(load):
  with pytest.raises(errors.GdpError,
                     match='"a", field "seconds": no entry is for GPU:0'):
    _seconds(load, seconds={'GPU:5': 1, 'CPU': 1})


def test_memory_is_the_simulators(load):
  graph, costs = load(
      {
          'name': 'w', 'op': 'Variable', 'seconds': 0, 'memory': 1000,
          'outputs': 1000
      }, {'name': 'a', 'seconds': 1, 'outputs': 10, 'workspace': 3},
      {'name': 'b', 'seconds': 1, 'outputs': 20},
      {'name': 'same', 'op': 'Identity', 'seconds': 0, 'outputs': 20},
      {'name': 'c', 'seconds': 1, 'outputs': 40, 'workspace': 100},
      edges=[['w', 'a'], ['a', 'b'], ['b', 'same'], ['same', 'c']])
  placement = placement_lib.Placement(np.ones(5, np.int32), _MIXED)
  result = simulator.Simulator(_MIXED, costs).evaluate(graph, placement)
  assert result.step_time_s == 3
  # The variable, what c reads, writes and works with; a's output is gone.
  assert result.peak_bytes == (0, 1000 + 20 + 40 + 100, 0)


def test_transfers_carry_outputs(load):
  graph, costs = load({'name': 'a', 'seconds': 1, 'outputs': 12_000_000},
                      {'name': 'b', 'seconds': 1}, edges=[['a', 'b']])
  link = next(l for l in _MIXED.links
              if (l.source, l.target) == (_MIXED.devices[1].name,
                                          _MIXED.devices[2].name))
  placement = placement_lib.Placement(np.array([1, 2], np.int32), _MIXED)
  result = simulator.Simulator(_MIXED, costs).evaluate(graph, placement)
  assert result.step_time_s == pytest.approx(2 + link.latency_s + 12e6
                                             / link.bandwidth_bytes_per_s)


def test_other_paths_are_none(tmp_path):
  (tmp_path / 'text').write_text('some text')
  for path in ('no/such', str(tmp_path), str(tmp_path / 'text'),
               'module:function'):
    assert given_costs.load(origin.Origin(str(path))) is None


def test_a_json_file_that_is_none_is_told_as_such(tmp_path):
  (tmp_path / 'it.json').write_text('nodes:\n')
  with pytest.raises(errors.InvalidGraphError, match='it.json is not JSON'):
    given_costs.load(origin.Origin(str(tmp_path / 'it.json')))


@pytest.mark.parametrize('preset, model', [('1xK40', 'K40'), ('2xP100', 'P100'),
                                           ('8xV100', 'V100'),
                                           ('16xV100', 'V100'),
                                           ('1xA100', 'A100'),
                                           ('1xH100', 'H100'),
                                           ('haswell', 'haswell'),
                                           ('rome2', 'rome2')])
def test_devices_of_presets_are_of_their_model(load, preset, model):
  _, seconds = _seconds(load, presets.preset(preset),
                        seconds={'CPU': 1, 'GPU': 1, model: 2})
  assert seconds[-1] == 2


def test_a_small_kernel_leaves_room_on_its_card(load):
  """Each kernel of such a graph once used its whole card."""
  graph, costs = load({'name': 'a', 'flops': 1e6, 'outputs': 4000},
                      {'name': 'b', 'seconds': 1e-3, 'outputs': 4000})
  cluster = presets.preset('1xH100:2')
  seconds = costs.op_seconds(graph, cluster)
  shares = costs.card_shares(graph, cluster, seconds)
  np.testing.assert_array_equal(
      shares[0],
      roofline.Roofline().card_shares(graph, cluster, seconds)[0])
  assert 0 < shares[0, 1] < .1
  assert (shares[1] == 1).all()  # FLOPs and bytes are unknown.


@pytest.mark.e2e
def test_loading_and_pricing_needs_no_tensorflow(load, tmp_path):
  load({'name': 'a', 'seconds': 1}, {'name': 'b', 'seconds': 2},
       edges=[['a', 'b']])
  (tmp_path
   / 'cost.pbtxt').write_text('node { name: "a" id: 1 compute_cost: 3 }')
  done = fresh.run_code(f'''
import json, sys
import numpy as np
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import given_costs
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph.sources import origin
steps = []
for name in ('graph.json', 'cost.pbtxt'):
  path = {str(tmp_path)!r} + '/' + name
  graph, costs = given_costs.load(origin.Origin(path))
  cluster = presets.preset('2xP100')
  steps.append(simulator.Simulator(cluster, costs).price(
      graph, np.ones((1, graph.num_ops), int)).seconds[0])
print(json.dumps([steps, 'tensorflow' in sys.modules]))
''')
  steps, imported = done.results
  host = device_figures.CARD_LAUNCH
  assert steps == pytest.approx(
      [3 + host['dispatch_s'] + host['gap_s'], 3e-6 + host['dispatch_s']])
  assert not imported
