"""Events of a placed step, read back."""

import io

from PIL import Image
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.reports import tensorboard
from gdp_grappler.reports import timeline_image
from helpers import clusters
from helpers import graphs
from helpers import tensorboard_events

# Two tensors of a go to b and c, a control edge goes from b to c.
_GRAPH = graphs.make_graph([(0, 1, 100), (0, 2, 50, 1), (1, 2)], 3,
                           names=['x/a', 'x/b', 'c'])
_CLUSTER = clusters.make_cluster(2)
_PLACEMENT = placement_lib.Placement([1, 2, 1], _CLUSTER)


@pytest.fixture(name='folder')
def _folder(tmp_path):
  schedule = simulator.Simulator(_CLUSTER, clusters.FixedCosts(1.)).schedule(
      _GRAPH, _PLACEMENT)
  tensorboard.write(tmp_path, _GRAPH, _PLACEMENT, schedule, ['said'], 7)
  return tmp_path


def test_the_graph_has_devices_times_and_edges(folder):
  [found] = tensorboard_events.graphs(folder)
  names = _CLUSTER.device_names
  assert [(node.name, node.device) for node in found.node
         ] == [('x/a', names[1]), ('x/b', names[2]), ('c', names[1])]
  assert [list(node.input) for node in found.node] == [[], ['x/a'],
                                                       ['x/a:1', '^x/b']]
  assert found.node[0].attr['simulated_ms'].f == 1000.
  assert found.node[0].attr['simulated_start_ms'].f == 0.


def test_summary_histogram_and_timeline_are_there(folder):
  assert tensorboard_events.plugins(folder) == {
      'placement/summary': 'text', 'placement/devices': 'histograms',
      'placement/timeline': 'images'
  }
  found = tensorboard_events.values(folder)
  assert {step for step, _ in found.values()} == {7}
  [text] = found['placement/summary'][1]
  assert text.decode().startswith('said\n\n| device | ops |')
  assert found['placement/devices'][1][:, 2].tolist() == [0, 2, 1]


def test_the_timeline_is_a_picture_of_all_lanes(folder):
  width, height, png = tensorboard_events.values(
      folder)['placement/timeline'][1]
  image = Image.open(io.BytesIO(png))
  assert image.size == (int(width), int(height))
  assert image.width > timeline_image.COLUMNS
  assert len(image.getcolors(1 << 16)) > 4


def test_a_folder_that_cannot_be_is_one_line(tmp_path):
  (tmp_path / 'file').write_text('')
  schedule = simulator.Simulator(_CLUSTER).schedule(_GRAPH, _PLACEMENT)
  with pytest.raises(errors.GdpError, match='Cannot write') as info:
    tensorboard.write(tmp_path / 'file' / 'logs', _GRAPH, _PLACEMENT, schedule,
                      [])
  assert '\n' not in str(info.value)


@pytest.mark.parametrize('step_ms, expected', [
    (8.298, [0, 2, 4, 6]),
    (12.17, [0, 5, 10]),
    (60., [0, 10, 20, 30, 40, 50]),
    (.001, [0, .0002, .0004, .0006, .0008]),
    (0., []),
])
def test_the_axis_has_round_numbers(step_ms, expected):
  """Once they were sixths of the step, such as 1.66 and 3.319 ms."""
  moments = timeline_image._round_moments(step_ms * 1e-3)
  assert [moment * 1e3 for moment in moments] == pytest.approx(expected)
