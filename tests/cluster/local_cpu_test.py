import pytest

from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import local_cpu

# As virtual machines have it: no clock in the name.
_MILAN = '\n'.join(f'''processor	: {core}
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 1
model name	: AMD EPYC
physical id	: 0
flags		: fpu constant_tsc avx2
bogomips	: 4890.81
''' for core in range(2))
_CORE = local_cpu.CORE_BYTES_PER_S


def test_a_named_clock():
  text = _MILAN.replace('AMD EPYC', 'Intel(R)  Xeon(R) CPU @ 2.30GHz')
  found = local_cpu.parse(text, 4)
  assert found.hertz == 2.3e9 and not found.is_assumed
  assert found.describe(
  ) == '4 cores of 2.3 GHz (Intel(R) Xeon(R) CPU @ 2.30GHz)'


def test_the_time_stamp_counter_tells_the_nominal_clock():
  found = local_cpu.parse(_MILAN, 1)
  assert found.hertz == 2.445e9 and not found.is_assumed
  assert 'avx2' in found.instruction_sets
  assert found.describe().startswith('1 core of 2.4')


@pytest.mark.parametrize('text', [
    '', 'bogomips: 50\n',
    _MILAN.replace('constant_tsc', ''),
    _MILAN.replace('4890.81', '0.00'),
    _MILAN.replace('4890.81', 'many')
])
def test_what_nobody_tells_is_assumed(text):
  found = local_cpu.parse(text, 2)
  assert found.hertz == 2.5e9 and found.is_assumed and found.cores == 2


def test_cores_share_what_their_chips_have():
  chip = device_figures.CPUS['milan'].bandwidth_bytes_per_s
  assert local_cpu.parse(_MILAN, 2).bandwidth_bytes_per_s == 2 * _CORE
  assert local_cpu.parse(_MILAN, 64).bandwidth_bytes_per_s == chip
  two = _MILAN.replace('physical id	: 0', 'physical id	: 1', 1)
  assert local_cpu.parse(two, 64).bandwidth_bytes_per_s == 2 * chip


@pytest.mark.parametrize('changed', ['model		: 99', 'model		: ?'])
def test_of_an_unknown_processor_cores_alone_count(changed):
  text = _MILAN.replace('model		: 1', changed)
  assert local_cpu.parse(text, 64).bandwidth_bytes_per_s == 64 * _CORE


def test_this_machine():
  found = local_cpu.processor()
  assert found.cores >= 1 and found.hertz > 1e8
  assert found.bandwidth_bytes_per_s >= _CORE


def test_every_model_is_in_the_table():
  assert set(local_cpu._MODELS.values()) <= set(device_figures.CPUS)
