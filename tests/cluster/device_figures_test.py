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
                          ('NVIDIA B200', 'B200'), ('NVIDIA H200', 'H200'),
                          ('NVIDIA GB200', 'GB200'),
                          ('NVIDIA RTX A6000', 'A6000'),
                          ('AMD Instinct MI300X', 'MI300X'),
                          ('NVIDIA GeForce RTX 3090', 'RTX3090'),
                          ('NVIDIA GeForce RTX 3090 Ti', None),
                          ('NVIDIA GeForce RTX 4090 Laptop GPU', None),
                          ('NVIDIA A100-SXM4-40GB MIG 1g.5gb', None),
                          ('NVIDIA GeForce RTX 5090', 'RTX5090'),
                          ('NVIDIA GeForce RTX 5080', 'RTX5080'),
                          ('NVIDIA GeForce RTX 5070', 'RTX5070'),
                          ('NVIDIA GeForce RTX 5070 Ti', 'RTX5070TI'),
                          ('NVIDIA GeForce RTX 5070 Ti Laptop GPU', None),
                          ('NVIDIA GeForce RTX 5080 Ti', None),
                          ('NVIDIA A1000', None), ('', None)])
def test_cards_by_title(title, name):
  card = device_figures.card_of(title)
  assert (card.name if card else None) == name
