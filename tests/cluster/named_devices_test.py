import json
import pathlib

from google.protobuf import json_format
from google.protobuf import text_format
import pytest
from tensorflow.core.protobuf import device_properties_pb2

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import named_devices
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import type_rates

_PATH = (pathlib.Path(__file__).parents[1] / 'testdata' / 'two_cards.pbtxt')
_TEXT = _PATH.read_text()
_CPU, _GPU0, _GPU1 = (
    cluster_lib.local_name(*d) for d in (('CPU', 0), ('GPU', 0), ('GPU', 1)))


def test_text_in_the_terms_of_tensorflow():
  cluster = cluster_file.read(str(_PATH))
  assert cluster.name == 'two cards' and cluster.step_s == 1e-4
  assert cluster.devices == (cluster_lib.Device(_CPU, 'CPU', 274877906944,
                                                14 * 2.6e9 * 32 / 2, 0.5,
                                                38.4e9, 2e-6, _CPU, _CPU,
                                                slots=2),
                             cluster_lib.Device(_GPU0, 'GPU', 17071734784,
                                                56 * 64 * 1328e6 * 2, 0.7,
                                                732.16e9,
                                                device_figures.GPU_LAUNCH_S,
                                                _GPU0, _GPU0,
                                                **device_figures.CARD_LAUNCH,
                                                **type_rates.of_card('P100')),
                             cluster_lib.Device(_GPU1, 'GPU', 12079136768,
                                                4.29e12, 0.7, 100e9, 7e-6,
                                                _GPU1, "the K40's",
                                                **device_figures.CARD_LAUNCH,
                                                **type_rates.of_card('K40')))
  links = {(l.source, l.target): l for l in cluster.links}
  assert len(links) == 6
  assert links[_GPU1, _CPU] == cluster_lib.Link(_GPU1, _CPU, 2e-5, 6e9,
                                                ('GPU:1 out', 'switch up'))
  assert links[_GPU0, _GPU1] == cluster_lib.Link(_GPU0, _GPU1, 1e-5, 10e9,
                                                 ('GPU:0 out', 'GPU:1 in'))
  assert cluster.notes == (
      'devices[2]: 100 GB/s of memory, as Grappler takes where bandwidth is '
      'not given.',)


@pytest.mark.parametrize('suffix', ['.json', '.pbtxt', '.txt'])
@pytest.mark.parametrize(
    'name', ['2xP100', '8xV100', '2x2xK40-eth10', '1xH100:2', 'cpu'])
def test_what_is_written_is_read(tmp_path, name, suffix):
  cluster, path = presets.preset(name), str(tmp_path / f'c{suffix}')
  cluster_file.write(path, cluster)
  assert cluster_file.read(path) == cluster


def test_json_to_text_to_json_of_a_file(tmp_path):
  cluster = cluster_file.read(str(_PATH))
  paths = [str(tmp_path / name) for name in ('1.json', '2.pbtxt', '3.json')]
  for path in paths:
    cluster_file.write(path, cluster)
    cluster = cluster_file.read(path)
  assert cluster == cluster_file.read(str(_PATH))
  assert cluster.notes == cluster_file.read(str(_PATH)).notes


def test_named_devices_as_tensorflow_writes_their_json(tmp_path):
  named = device_properties_pb2.NamedDevice()
  text_format.Parse(
      'name: "/CPU:0" properties { type: "CPU" num_cores: 2 '
      'frequency: 1000 memory_size: 100 bandwidth: 50 }', named)
  path = tmp_path / 'devices.json'
  path.write_text(json.dumps([json_format.MessageToDict(named)]))
  cluster = cluster_file.read(str(path))
  assert cluster.name == str(path) and cluster.device_names == (_CPU,)
  assert cluster.devices[0].memory_bytes == 100
  # One operation per core and cycle, as Grappler has it, over two slots.
  assert cluster.devices[0].peak_flops == 1e9
  assert cluster.devices[0].bandwidth_bytes_per_s == 25e3
  assert 'as Grappler counts' in cluster.notes[0]


def test_a_card_of_the_table_needs_only_its_name():
  text = _TEXT.replace('frequency: 1328', '').replace('num_cores: 56', '')
  cluster = named_devices.from_text(text, 'x')
  assert cluster.devices[1].peak_flops == 9.3e12
  assert 'data sheet of P100' in cluster.notes[0]


@pytest.mark.parametrize('old, new, message', [
    ('bandwidth_bytes_per_s: 6e9', 'bandwidth_bytes_per_s: -5',
     'links[1].bandwidth_bytes_per_s ('),
    ('bandwidth_bytes_per_s: 6e9', 'bandwidth_bytes_per_s: -5', 'is -5.0'),
    ('latency_s: 2e-5', 'latency_s: nan', 'is nan'),
    ('latency_s: 2e-5', '', 'links[1].latency_s is missing'),
    ('default_link { latency_s: 1e-5 bandwidth_bytes_per_s: 10e9 }', '',
     f'the link {_CPU} -> {_GPU0} is missing'),
    ('default_link {', 'default_link { source: "CPU:0"', 'default_link.source'),
    ('source: "GPU:1"', 'source: "GPU:7"', 'links[1].source: '),
    ('source: "GPU:1"', 'source: "GPU"', '"GPU" is not a device name'),
    ('source: "GPU:1"', 'source: "GPU:0"', 'links[1]: the link'),
    ('type: "GPU"', 'type: "TPU"', 'devices[1].properties.type is "TPU"'),
    ('type: "CPU"', 'type: "GPU"',
     'devices[0].properties.type is "GPU", but the name says "CPU"'),
    ('bandwidth_bytes_per_s: 10e9', 'bandwidth_bytes_per_s: -5',
     'default_link.bandwidth_bytes_per_s is -5.0'),
    ('default_link { latency_s: 1e-5', 'default_link { latency_s: -1',
     'default_link.latency_s is -1.0'),
    ('default_link { latency_s: 1e-5', 'default_link {',
     'default_link.latency_s is missing'),
    ('default_link {', 'default_link { channels: ""',
     "default_link.channels is ''"),
    ('frequency: 2600', 'frequency: -1',
     'devices[0].properties.frequency is -1; give MHz'),
    ('frequency: 1328', 'frequency: -1',
     'devices[1].properties.frequency is -1; give MHz'),
    ('num_cores: 56', 'num_cores: -2',
     'devices[1].properties.num_cores is -2; give how many'),
    ('key: "launch_s" value: "7e-6"', 'key: "efficiency" value: "2"',
     'is 2.0; give the share'),
    ('name: "GPU:1"', 'name: "GPU:0"', 'devices[2].name: device'),
    ('memory_size: 17071734784', '', 'devices[1].properties.memory_size is 0'),
    ('memory_size: 17071734784', 'memory_size: -1', 'memory_size is -1'),
    ('bandwidth: 732160000', 'bandwidth: -1', 'properties.bandwidth is -1'),
    ('value: "4.29e12"', 'value: "fast"', '["peak_flops"] is "fast"'),
    ('key: "launch_s"', 'key: "launchs"', 'Did you mean "launch_s"?'),
    ('key: "launch_s"', 'key: "slots"', '["slots"] is 7e-06'),
    ('value: "6.0"', 'value: "sm_60"', '["architecture"] is "sm_60"'),
    ('model: "Tesla P100-PCIE-16GB"\n    frequency: 1328', '',
     'devices[1].properties lacks num_cores, frequency'),
    ('value: "7e-6"', 'value: "nan"', 'devices[2].launch_s'),
    ('num_cores: 14', '', 'devices[0].properties lacks num_cores'),
    ('num_cores: 14', 'num_corse: 14', 'no field named "num_corse"'),
    ('num_cores: 14', 'num_cores: "14"', '10:16'),
    ('step_s: 1e-4', 'step_s: -1', 'step_s is -1.0'),
])
def test_wrong_text(tmp_path, old, new, message):
  path = tmp_path / 'wrong.pbtxt'
  assert old in _TEXT
  path.write_text(_TEXT.replace(old, new, 1))
  with pytest.raises(errors.ClusterError) as error:
    cluster_file.read(str(path))
  assert message in str(error.value)
  assert str(error.value).startswith(str(path))
  assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    'change, message',
    [({'devices': [{'name': 'CPU:0', 'properties': {'typ': 'CPU'}}]}, '"typ"'),
     ({'devices': [{'name': 'CPU:0', 'properties': 3}]}, 'not a cluster file'),
     ({'links': {}}, 'not a cluster file'), ({'colour': 1}, '"colour"')])
def test_wrong_json_in_the_terms_of_tensorflow(tmp_path, change, message):
  device = {
      'name': 'CPU:0', 'properties': {
          'type': 'CPU', 'numCores': 1, 'frequency': 1, 'memorySize': 1
      }
  }
  path = tmp_path / 'wrong.json'
  path.write_text(json.dumps({'devices': [device]}))
  assert cluster_file.read(str(path)).num_devices == 1
  path.write_text(json.dumps({'devices': [device], **change}))
  with pytest.raises(errors.ClusterError) as error:
    cluster_file.read(str(path))
  assert message in str(error.value) and str(path) in str(error.value)


def test_a_card_has_the_rates_of_its_data_sheet_unless_the_file_has_its_own():
  *_, gpu = named_devices.from_text(_TEXT, 'x').devices
  assert gpu.float16_rate == 1 and gpu.float64_rate == 1 / 3
  text = _TEXT.replace('environment { key: "launch_s" value: "7e-6" }',
                       'environment { key: "float16_rate" value: "4" }')
  *_, gpu = named_devices.from_text(text, 'x').devices
  assert gpu.float16_rate == 4 and gpu.float64_rate == 1 / 3


def test_a_peak_by_clocks_has_rates_by_capability():
  """An A100 had float16 at twice its peak without units for matrices."""
  text = _TEXT.replace('P100', 'A100').replace('"6.0"', '"8.0"')
  _, gpu, _ = named_devices.from_text(text, 'x').devices
  assert gpu.peak_flops == 56 * 64 * 1328e6 * 2
  assert gpu.float16_rate == 16 and gpu.float64_rate == 1


def test_a_card_runs_as_its_environment_says():
  text = _TEXT.replace('environment { key: "launch_s" value: "7e-6" }',
                       'environment { key: "launch" value: "synchronous" }')
  devices = named_devices.from_text(text, 'x').devices
  assert [device.asynchronous for device in devices] == [False, True, False]
