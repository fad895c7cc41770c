import pytest

from gdp_grappler.cluster import device_figures


@pytest.mark.parametrize('title, name',
                         [('Tesla P100-PCIE-16GB', 'P100'),
                          ('NVIDIA A100-SXM4-40GB', 'A100'),
                          ('Tesla V100-SXM2-16GB', 'V100'),
                          ('NVIDIA H100 80GB HBM3', 'H100'),
                          ('Tesla K40', 'K40'), ('Tesla K40m', 'K40'),
                          ('Tesla T4', 'T4'), ('NVIDIA L4', 'L4'),
                          ('NVIDIA L40S', 'L40S'), ('NVIDIA L40', None),
                          ('NVIDIA A10', 'A10'), ('NVIDIA A10G', 'A10G'),
                          ('NVIDIA B200', 'B200'),
                          ('NVIDIA RTX A6000', 'A6000'),
                          ('AMD Instinct MI300X', 'MI300X'),
                          ('NVIDIA GeForce RTX 3090', 'RTX3090'),
                          ('NVIDIA GeForce RTX 3090 Ti', None),
                          ('NVIDIA GeForce RTX 4090 Laptop GPU', None),
                          ('NVIDIA GeForce RTX 5090', 'RTX5090'),
                          ('NVIDIA A1000', None), ('', None)])
def test_cards_by_title(title, name):
  card = device_figures.card_of(title)
  assert (card.name if card else None) == name


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
  assert device_figures.gpu_flops(multiprocessors, hertz,
                                  capability) == pytest.approx(flops, rel=0.01)


@pytest.mark.parametrize('sets, per_cycle', [('AVX512F, FMA, AVX2', 64),
                                             ('fma avx2 avx', 32),
                                             ('AVX, SSE4.2', 16),
                                             ('SSE, SSE2', 8), ('', 1),
                                             ('NEON', 1)])
def test_flops_of_cpus(sets, per_cycle):
  assert device_figures.cpu_flops(4, 2e9, sets) == 8e9 * per_cycle
