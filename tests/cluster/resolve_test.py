import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import resolve

_CPUS = tuple(
    f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(3))


def test_presets_local_and_files(tmp_path):
  preset = presets.preset('2xP100')
  assert resolve.resolve('2xP100') == preset
  assert resolve.resolve('local', _CPUS).device_names == _CPUS
  path = tmp_path / 'mine.json'
  path.write_text(preset.to_json())
  assert resolve.resolve(str(path)) == preset
  assert resolve.resolve('2x4xV100-ib').num_devices == 10
  text = tmp_path / 'mine.pbtxt'
  cluster_file.write(str(text), preset)
  assert resolve.resolve(str(text)) == preset


@pytest.mark.parametrize('value', [3, None, presets.preset('cpu')])
def test_a_value_that_is_no_text(value):
  with pytest.raises(errors.ClusterError, match='give a text'):
    resolve.resolve(value)


def test_a_file_in_the_folder_one_is_in(tmp_path, monkeypatch):
  (tmp_path / 'mine').write_text(presets.preset('4xP100').to_json())
  monkeypatch.chdir(tmp_path)
  assert resolve.resolve('mine').name == '4xP100'
  with pytest.raises(errors.ClusterError, match='Unknown cluster "yours"'):
    resolve.resolve('yours')
  with pytest.raises(errors.ClusterError, match='Cannot read cluster file'):
    resolve.resolve('yours.json')
  with pytest.raises(errors.ClusterError, match='Cannot read cluster file'):
    resolve.resolve('yours.pbtxt')


def test_a_folder_does_not_hide_a_preset(tmp_path, monkeypatch):
  """The folder was read as a cluster file."""
  (tmp_path / '2xP100').mkdir()
  monkeypatch.chdir(tmp_path)
  assert resolve.resolve('2xP100') == presets.preset('2xP100')


def test_a_folder_is_no_cluster(tmp_path, monkeypatch):
  """The message said that the folder is not a card."""
  (tmp_path / 'mine').mkdir()
  monkeypatch.chdir(tmp_path)
  for text in ('mine', './mine'):
    with pytest.raises(errors.ClusterError, match='it is a folder'):
      resolve.resolve(text)


@pytest.mark.parametrize('target', ['grpc://', 'grpc:host:1', 'grpc://a b:1'])
def test_targets_that_are_none(target):
  with pytest.raises(errors.ClusterError, match='is not a target'):
    resolve.resolve(target)
