import time

import pytest

from gdp_grappler import deadlines
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.calibrating import clocks


def _bench(**changes):
  return clocks.Bench(
      presets.preset('1xH100').devices[1], **{
          'logical': 3, 'memory_bytes': 8 << 30, 'small_bytes': 1 << 29,
          **changes
      })


def test_parts_of_the_card_and_of_another_one():
  bench = _bench(cards=2)
  options = bench.config().gpu_options
  assert options.visible_device_list == '0,1'
  parts = options.experimental.virtual_devices
  assert [list(p.memory_limit_mb) for p in parts] == [[8192, 512, 512], [512]]
  assert bench.name() == '/device:GPU:0' and bench.other_card == '/device:GPU:3'
  assert _bench().other_card is None


def test_a_cpu_in_place_of_a_card():
  bench = clocks.Bench(presets.preset('cpu').devices[0], 2)
  config = bench.config()
  assert config.device_count['CPU'] == 3  # One is the host.
  assert not config.gpu_options.experimental.virtual_devices
  assert (bench.host, bench.name(1)) == ('/device:CPU:0', '/device:CPU:2')


def test_what_others_take_does_not_count(monkeypatch):
  now = iter(x for begin in range(100)
             for x in (begin, begin + (9. if begin % 2 else .5)))
  monkeypatch.setattr(time, 'perf_counter', lambda: next(now))
  assert clocks.quick([lambda: None]) == [.5]


def test_fewer_turns_where_time_is_out():
  count = []
  clocks.quick([lambda: count.append(1)], deadlines.within(0.))
  assert len(count) == 2 + 3


@pytest.mark.parametrize('number', [0, 2])
def test_names_of_parts(number):
  assert _bench().name(number) == f'/device:GPU:{number}'
