"""Compares simulated throughputs of convolutional networks with published ones.

Run it from the repository with `python -m benchmarks.published`; `--json`
prints a list of rows instead of a table. It takes minutes, because Keras builds
large models.

All published steps are training with SGD on synthetic images on one card, in
float32 without TF32, and with batch normalization as one kernel:

* P100 (of a DGX-1: SXM2, 10.6 TFLOP/s) and K80 (one die of two, 240 GB/s;
  4.37 TFLOP/s at its highest clock rate): TensorFlow, "Benchmarks", May 2017,
  cuDNN 5.1 (tensorflow/docs_src/performance/benchmarks.md).
* V100 (SXM3): Balaban and Li, "RTX 2080 Ti Deep Learning Benchmarks with
  TensorFlow", Lambda, 2019, TensorFlow 1.12, cuDNN 7.4. It does not state the
  batch sizes; 64 is taken.

`type_rates.WINOGRAD_RATE` was fitted to the first three rows of the P100.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any, Iterator, Sequence

import keras
import tensorflow as tf

from benchmarks import tables
import gdp_grappler as gdp
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator as simulator_lib

_CARDS: dict[str, tuple[str, dict[str, Any]]] = {
    'P100': ('1xP100', {'peak_flops': 10.6e12}),
    'K80': ('1xK40', {'peak_flops': 4.37e12, 'bandwidth_bytes_per_s': 240e9}),
    'V100': ('1xV100', {}),
}
# Card, network of `keras.applications`, images of a batch, published images/s.
_PUBLISHED = tuple(line.split() for line in """
    P100 InceptionV3 64 142 fitted
    P100 ResNet50 64 219 fitted
    P100 VGG16 64 154 fitted
    P100 ResNet152 64 91.8 held_out
    V100 InceptionV3 64 259 held_out
    V100 ResNet50 64 405 held_out
    V100 ResNet152 64 155 held_out
    K80 InceptionV3 64 30.5 choice
    K80 ResNet50 64 51.9 choice
    K80 ResNet152 32 20 choice
    K80 VGG16 32 35.4 choice
    """.strip().splitlines())


@dataclasses.dataclass(frozen=True)
class Row:
  """One network on one card.

  Attributes:
    card: Name of the card.
    network: Name of the network.
    batch: Number of images of a step.
    published: Published images per second.
    simulated: Simulated images per second.
    role: 'fitted', 'held_out', or 'choice': these figures decided which cards
      have the rate at all.
  """

  card: str
  network: str
  batch: int
  published: float
  simulated: float
  role: str


def rows() -> Iterator[Row]:
  """Prices all networks on all cards; each network is built once per batch."""
  known: dict[tuple[str, int], Any] = {}
  for card, network, batch, published, role in _PUBLISHED:
    key = network, int(batch)
    if key not in known:
      known[key] = gdp.place(model(*key), '1xP100', placer='gpu_only',
                             verbose=False)
    plan = known[key]
    prices = simulator_lib.Simulator(cluster(card)).price(
        plan.graph, plan.placement.devices[None])
    yield Row(card, *key, float(published), key[1] / float(prices.seconds[0]),
              role)


def cluster(card: str) -> cluster_lib.Cluster:
  """Returns a CPU and a card as those who published had it.

  Args:
    card: 'P100', 'V100' or 'K80'.
  """
  name, figures = _CARDS[card]
  result = presets.preset(name)
  devices = [
      dataclasses.replace(d, **figures) if d.type == 'GPU' else d
      for d in result.devices
  ]
  return dataclasses.replace(result, devices=tuple(devices))


def model(network: str, batch: int) -> keras.Model:
  """Returns a compiled network whose batch normalization is one kernel.

  Args:
    network: Name in `keras.applications`.
    batch: Number of images of a step.
  """
  side = 299 if network.startswith('Inception') else 224
  shape = side, side, 3
  plain = getattr(keras.applications, network)(weights=None, input_shape=shape)
  fused = keras.models.clone_model(plain, clone_function=_fused)
  images = keras.Input(shape, batch_size=batch)
  result = keras.Model(images, fused(images))
  result.compile('sgd', 'sparse_categorical_crossentropy', jit_compile=False)
  return result


class _Normalization(keras.layers.Layer):
  """Batch normalization by TensorFlow's fused op, in training."""

  def build(self, shape: Sequence[int | None]) -> None:
    self.scale, self.offset, self.mean, self.variance = (
        self.add_weight(shape=(shape[-1],), trainable=i < 2) for i in range(4))

  def call(self, images: tf.Tensor, training: bool = True,
           mask: Any = None) -> tf.Tensor:
    del training, mask
    result, *moments = tf.compat.v1.nn.fused_batch_norm(images, self.scale,
                                                        self.offset)
    for kept, new in zip((self.mean, self.variance), moments):
      kept.assign(.99 * kept + .01 * new)
    return result

  def compute_output_shape(self, shape: Sequence[int | None]) -> Any:
    return shape


def _fused(layer: keras.layers.Layer) -> keras.layers.Layer:
  """Returns a copy of a layer, or the fused layer for a normalization."""
  if isinstance(layer, keras.layers.BatchNormalization):
    return _Normalization(name=layer.name)
  return type(layer).from_config(layer.get_config())


def _find(arguments: argparse.Namespace) -> tables.Table:
  del arguments
  found = list(rows())
  cells = [
      (f'{row.network} on {row.card}', str(row.batch), f'{row.published:g}',
       f'{row.simulated:.1f}', f'{row.simulated / row.published:.2f}', row.role)
      for row in found
  ]
  return tables.Table(
      'Images per second in training, published and simulated',
      ('network', 'batch', 'published', 'simulated', 'ratio', ''), cells,
      [dataclasses.asdict(row) for row in found])


main = tables.program('published', __doc__, 'Published', _find)

if __name__ == '__main__':
  sys.exit(main())
