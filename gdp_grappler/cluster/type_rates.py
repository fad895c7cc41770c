"""Rates of dense kernels by the type of their elements, and by Winograd.

`Device.peak_flops` holds for float32 as TensorFlow multiplies it: on the units
for matrices (TF32) if the card has some for float32. Rates of other types are
multiples of it. The table has the ratios of the peaks in the data sheets and
whitepapers that `device_figures` names, without sparsity.

* float16 and bfloat16 are multiplied and summed up in float32, TensorFlow's
  default. So the doubled rate of the P100 for sums in float16 does not count,
  and neither do such rates of consumer cards. Cards before A100 compute
  bfloat16 at the rate of float32 at best.
* float64 runs on the units for matrices of A100, H100, H200, B200, GB200 and
  AMD's cards. Consumer cards have 1/64 of their rate of float32 without TF32.

The last rate is that of float32 convolutions which Winograd's algorithm
computes with fewer multiplications (`graph.winograd`). FLOPs are those of the
definition, whatever the algorithm, so the rate may exceed the card's peak.

* The algorithm saves a factor of 2.25 on tiles of 2 x 2 outputs, and of 4 on
  tiles of 4 x 4 (Lavin and Gray, "Fast Algorithms for Convolutional Neural
  Networks", CVPR 2016, section 4). Transforms of the tiles take a part of it.
  cuDNN has such kernels since version 5.
* `WINOGRAD_RATE` is one number, fitted to published steps of InceptionV3,
  ResNet-50 and VGG16 on a P100 (docs/simulator.md, "Published throughputs").
* Cards with TF32 have units that multiply the definition faster.
* Published steps on a K80 do not fit better with this rate: networks with other
  filters are priced too low even without it, and with it VGG16 is, too. So
  Kepler cards, before compute capability 5.0, have the rate 1.
"""

from __future__ import annotations

from typing import Any

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import validation

WINOGRAD = 'winograd'  # The `element_type` of `rate` for such convolutions.
WINOGRAD_RATE = 3.

_OF_CARD = {
    name: tuple(map(float, rates)) for name, *rates in (
        # Card, float16, bfloat16, float64, Winograd.
        ('K40', 1, 1, 1 / 3, 1),
        ('P100', 1, 1, 1 / 2, WINOGRAD_RATE),
        ('V100', 8, 1, 1 / 2, WINOGRAD_RATE),
        ('T4', 8, 1, 1 / 32, WINOGRAD_RATE),
        ('A100', 2, 2, 1 / 8, 1),
        ('RTX3090', 2, 2, 1 / 64, 1),
        ('A6000', 2, 2, 1 / 128, 1),
        ('A10', 2, 2, 1 / 128, 1),
        ('A10G', 2, 2, 1 / 64, 1),
        ('MI250X', 4, 4, 1, 1),
        ('H100', 2, 2, 67 / 494.5, 1),
        ('H200', 2, 2, 67 / 494.5, 1),
        ('RTX4090', 2, 2, 1 / 64, 1),
        ('L4', 2, 2, 1 / 127, 1),
        ('L40S', 2, 2, 1 / 128, 1),
        ('MI300X', 8, 8, 1, 1),
        ('B200', 2, 2, 37 / 1100, 1),
        ('GB200', 2, 2, 40 / 1250, 1),
        ('RTX5090', 2, 2, 1 / 64, 1),
        ('RTX5080', 2, 2, 1 / 64, 1),
        ('RTX5070TI', 2, 2, 1 / 64, 1),
        ('RTX5070', 2, 2, 1 / 64, 1),
    )
}
# Multiples of the rate of float32 without units for matrices, which is lanes x
# clock x 2. They hold from a compute capability to the next one in the table.
# The figures of 7.5, 8.6 and 12.0 are those of GeForce cards; professional
# cards multiply float16 at twice this rate, and some also bfloat16.
_OF_CAPABILITY = {
    (3, 0): (1., 1., 1 / 3, 1.),
    (5, 0): (1., 1., 1 / 32, WINOGRAD_RATE),
    (6, 0): (1., 1., 1 / 2, WINOGRAD_RATE),
    (6, 1): (1., 1., 1 / 32, WINOGRAD_RATE),
    (7, 0): (8., 1., 1 / 2, WINOGRAD_RATE),
    (7, 5): (4., 1., 1 / 32, WINOGRAD_RATE),
    (8, 0): (16., 16., 1., 1.),
    (8, 6): (2., 2., 1 / 64, 1.),
    (9, 0): (989 / 67, 989 / 67, 1., 1.),
    (10, 0): (2200 / 75, 2200 / 75, 37 / 75, 1.),
    (12, 0): (2., 2., 1 / 64, 1.),
}
# For devices that state no rate. GPUs: the rate of most cards and, for float64,
# a rate between those of servers and of consumers. CPUs: products of 1024 x
# 1024 on one core of an AMD EPYC of 2024 with TensorFlow 2.21. There bfloat16
# runs at 1.8 times the rate of float32, but older processors lack the
# instruction for it.
_DEFAULT = {'GPU': (2., 2., 1 / 32, 1.), 'CPU': (1., 1., 1 / 3, 1.)}
# Field of `cluster.Device` with the rate of a type.
_FIELDS = {
    field.removesuffix('_rate'): field for field in validation.TYPE_RATES
}


def of_card(card: str) -> dict[str, Any]:
  """Fields of `cluster.Device` with a card's rates; none if it is unknown.

  Args:
    card: Name of the card, such as 'H100'; a key of `device_figures.CARDS`.
  """
  return dict(zip(_FIELDS.values(), _OF_CARD.get(card, ())))


def of_capability(capability: tuple[int, int] | None) -> dict[str, Any]:
  """Fields of `cluster.Device` with rates for a peak that follows from clocks.

  Args:
    capability: Compute capability of the card; None if it is unknown.

  Returns:
    The fields; none if the capability is unknown or older than all known ones.
  """
  known = [key for key in _OF_CAPABILITY if capability and key <= capability]
  rates = _OF_CAPABILITY[max(known)] if known else ()
  return dict(zip(_FIELDS.values(), rates))


def rate(device: cluster_lib.Device, element_type: str) -> float:
  """Rate of dense kernels on a device, as a multiple of `peak_flops`.

  Args:
    device: The device.
    element_type: Type such as 'float16', or `WINOGRAD`. Types that have no rate
      of their own count as float32.
  """
  if element_type not in _FIELDS:
    return 1.
  stated: float | None = getattr(device, _FIELDS[element_type])
  if stated is not None:
    return stated
  return _DEFAULT[device.type][list(_FIELDS).index(element_type)]
