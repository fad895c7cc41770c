import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import max_memory
from gdp_grappler.cluster import presets
from helpers import clusters


@pytest.mark.parametrize('size, wanted', [('12GB', 12 * 10**9),
                                          ('12 gb', 12 * 10**9),
                                          ('12GiB', 12 << 30),
                                          ('500MB', 5 * 10**8),
                                          ('1.5MiB', 3 << 19), ('4096', 4096),
                                          ('7B', 7), (' 2TB ', 2 * 10**12)])
def test_sizes(size, wanted):
  assert max_memory.parse(f'GPU:0={size}') == (('GPU:0', wanted),)


def test_several_limits_and_none():
  assert max_memory.parse('GPU:0=12GB, cpu=64GB') == (('GPU:0', 12 * 10**9),
                                                      ('CPU', 64 * 10**9))
  assert max_memory.parse('') == ()
  assert max_memory.checked({'worker/1/GPU:0': 5}) == (('worker/1/GPU:0', 5),)


@pytest.mark.parametrize('text', [
    'GPU:0', 'GPU:0=', 'GPU:0=many', '=3GB', 'GPU:0=-1GB', 'GPU:0=0GB',
    'card=3GB', 'GPU:0=1GB,GPU:0=2GB', 'GPU:0=1e9', ',', 'GPU:0=9999999TB'
])
def test_bad_limits_are_one_error(text):
  with pytest.raises(errors.ClusterError, match='max_memory: .* such as'):
    max_memory.parse(text)


@pytest.mark.parametrize('size, wanted',
                         [(64 * 10**9, 64 * 10**9), (10**18, 10**18),
                          (1.5e16, 15 * 10**15), (np.int64(7), 7)])
def test_sizes_may_be_numbers(size, wanted):
  """A float that Python writes with an exponent was no size."""
  assert max_memory.checked({'GPU': size}) == (('GPU', wanted),)


@pytest.mark.parametrize('size',
                         [10**5000, '9' * 400, 10**18 + 1, 0, -1,
                          float('nan')], ids=errors.shown)
def test_numbers_out_of_range(size):
  """The first two raised Python's errors about conversions."""
  with pytest.raises(errors.ClusterError, match='out of range'):
    max_memory.checked({'GPU': size})


class _Mute:

  def __str__(self):
    raise RuntimeError


def test_messages_about_long_texts_are_short():
  for text in ('x' * 5000, f'{"x" * 5000}=1GB,' * 2):
    with pytest.raises(errors.ClusterError) as info:
      max_memory.parse(text)
    assert len(str(info.value)) < 400


@pytest.mark.parametrize('limits',
                         [{'GPU': _Mute()}, {1: '2GB'}, {'GPU:0': True},
                          {'GPU:0': None}, {'GPU:0': [1]}])
def test_bad_dicts_are_one_error(limits):
  with pytest.raises(errors.ClusterError, match='max_memory'):
    max_memory.checked(limits)


def _sizes(cluster):
  return [device.memory_bytes for device in cluster.devices]


def test_devices_go_before_their_type():
  cluster = presets.preset('3xT4')
  limited = max_memory.applied(cluster,
                               max_memory.parse('GPU:1=3GB,GPU=5GB,CPU=64GB'))
  assert _sizes(limited) == [64 * 10**9, 5 * 10**9, 3 * 10**9, 5 * 10**9]
  assert max_memory.applied(cluster, ()) is cluster


def test_a_limit_above_what_there_is_changes_nothing():
  cluster = presets.preset('2xT4')
  assert max_memory.applied(cluster, max_memory.parse('GPU=80GB')) == cluster


def test_devices_of_one_memory_share_the_limit():
  cluster = clusters.make_cluster(2, memory=['m', 'x', 'x'])
  limited = max_memory.applied(cluster, max_memory.parse('GPU:1=5MB'))
  assert _sizes(limited)[1:] == [5 * 10**6] * 2


def test_a_limit_for_a_device_that_is_not_there():
  cluster = presets.preset('2xT4')
  with pytest.raises(errors.ClusterError, match='GPU:7'):
    max_memory.applied(cluster, max_memory.parse('GPU:7=5MB'))
  without = presets.preset('cpu')
  with pytest.raises(errors.ClusterError, match='limits GPU'):
    max_memory.applied(without, max_memory.parse('GPU=5MB'))


def test_the_margin_is_kept_within_a_limit():
  cluster = max_memory.applied(presets.preset('1xT4'),
                               max_memory.parse('GPU:0=10GB'))
  margin = cluster.devices[1].memory_margin
  assert cluster.pool_bytes[1] == int(10**10 * (1 - margin))


def test_limits_come_as_a_text_a_dict_or_not_at_all():
  assert max_memory.read(None) == ()
  assert max_memory.read('GPU:0=1GB') == max_memory.read({'GPU:0': '1GB'})
