import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import presets


@pytest.mark.parametrize('name, gpus', [
    ('2xP100', 2), ('4xP100', 4), ('8xP100', 8)])
def test_presets(name, gpus):
  cluster = presets.preset(name)
  assert name in presets.NAMES and cluster.name == name
  assert [d.type for d in cluster.devices] == ['CPU'] + ['GPU'] * gpus
  assert len(cluster.links) == gpus * (gpus + 1)
  assert len(set(cluster.compute_units)) == gpus + 1
  assert len(set(cluster.memory_pools)) == gpus + 1
  assert cluster.devices[1].memory_bytes == 16 * 2**30


def test_each_gpu_has_one_wire_each_way():
  channels = presets.preset('2xP100').link_arrays[2]
  into, out = channels[0, 1], channels[1, 0]
  assert set(into).isdisjoint(out)
  assert set(channels[1, 2]) & set(out) and set(channels[2, 1]) & set(into)
  assert set(channels[0, 1]).isdisjoint(channels[0, 2])


@pytest.mark.parametrize('name', ['', '3xP100', '2xP100 ', '2xp100', '22xP100'])
def test_unknown_presets(name):
  with pytest.raises(errors.ClusterError,
                     match='Unknown cluster .* Presets: 2xP100, 4xP100'):
    presets.preset(name)
