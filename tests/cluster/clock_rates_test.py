import pytest

from gdp_grappler.cluster import clock_rates


# Multiprocessors and boost clocks of the data sheets.
@pytest.mark.parametrize('multiprocessors, hertz, capability, flops',
                         [(15, 745e6, (3, 5), 4.29e12),
                          (24, 1114e6, (5, 2), 6.8e12),
                          (56, 1303e6, (6, 0), 9.3e12),
                          (30, 1531e6, (6, 1), 11.8e12),
                          (80, 1530e6, (7, 0), 15.7e12),
                          (40, 1590e6, (7, 5), 8.1e12),
                          (108, 1410e6, (8, 0), 19.5e12),
                          (82, 1695e6, (8, 6), 35.6e12),
                          (128, 2520e6, (8, 9), 82.6e12),
                          (132, 1980e6, (9, 0), 67e12)])
def test_flops_from_clocks(multiprocessors, hertz, capability, flops):
  assert clock_rates.gpu_flops(multiprocessors, hertz,
                               capability) == pytest.approx(flops, rel=0.01)


@pytest.mark.parametrize('sets, per_cycle', [('AVX512F, FMA, AVX2', 64),
                                             ('fma avx2 avx', 32),
                                             ('AVX, SSE4.2', 16),
                                             ('SSE, SSE2', 8), ('', 1),
                                             ('NEON', 1)])
def test_flops_of_cpus(sets, per_cycle):
  assert clock_rates.cpu_flops(4, 2e9, sets) == 8e9 * per_cycle
