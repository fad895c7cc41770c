"""Maps raw features to inputs of order one, in TensorFlow ops.

Magnitudes span twelve decades, so the inputs are logarithms. One logarithm has
a fixed scale and tells a microsecond from a second. A second one is relative to
the graph's own mean or critical path, so it does not change if all costs of a
graph are multiplied. Each input of a unit is also given standardized over the
graph, which enlarges the differences between units. These ops are part of the
exported policy, so training and serving use the same normalization.
"""

from __future__ import annotations

from typing import Mapping, Sequence

import tensorflow as tf

from gdp_grappler.features import schema
from placer_model.layers import norms

# Scale of each column, a value that counts as small: log1p(value / scale) / 10.
UNIT_SCALES = {
    'flops': 1e6,
    'io_bytes': 1e3,
    'output_bytes': 1e3,
    'param_bytes': 1e3,
    'num_ops': 1.0,
    'num_inputs': 1.0,
    'num_outputs': 1.0,
    'input_bytes': 1e3,
    'fastest_s': 1e-6,
    'slowest_s': 1e-6,
    'downward_rank_s': 1e-6,
    'upward_rank_s': 1e-6,
    'level': 1.0,
}
# Scale of each column, an ordinary value: log(value / scale) / 5.
DEVICE_SCALES = {
    'memory_bytes': 2.0**34,
    'flops_per_s': 1e12,
    'bandwidth_bytes_per_s': 1e11,
    'launch_s': 1e-6,
    'link_latency_s': 1e-6,
    'link_bytes_per_s': 1e10,
    'devices_on_compute': 1.0,
}
# Columns that are also given relative to their mean over the graph.
_BY_MEAN = ('flops', 'io_bytes', 'output_bytes', 'param_bytes', 'input_bytes',
            'fastest_s', 'slowest_s')
# Columns that are also given relative to the cluster's best device.
_BY_BEST = ('memory_bytes', 'flops_per_s', 'bandwidth_bytes_per_s')
_TYPES = ('is_cpu', 'is_gpu')
_FLAGS = _TYPES + ('is_host',)


def device_inputs(devices: tf.Tensor) -> tf.Tensor:
  """Returns the inputs that describe devices.

  Args:
    devices: float32 [D, len(DEVICE_FEATURES)].

  Returns:
    float32 [D, 14]: flags, logarithms, shares of the cluster's best, and the
    number of devices.
  """
  best = _device_columns(devices, _BY_BEST)
  return tf.concat([
      _device_columns(devices, _FLAGS),
      _log_ratio(_device_columns(devices, DEVICE_SCALES),
                 list(DEVICE_SCALES.values())),
      tf.math.divide_no_nan(best, tf.reduce_max(best, axis=0)),
      tf.fill([tf.shape(devices)[0], 1],
              _log_count(devices) / 5.0),
  ], axis=1)


def log_speeds(devices: tf.Tensor) -> tf.Tensor:
  """Returns logarithms of peaks as shares of the cluster's best, float32 [D].

  Args:
    devices: float32 [D, len(DEVICE_FEATURES)].
  """
  peaks = _device_columns(devices, ('flops_per_s',))[:, 0]
  shares = tf.math.divide_no_nan(peaks, tf.reduce_max(peaks))
  return tf.math.log(tf.maximum(shares, 1e-3))


def device_slots(devices: tf.Tensor) -> tf.Tensor:
  """Returns each device's index among devices of its type, int32 [D]."""
  before = tf.linalg.band_part(tf.cast(_same_type(devices), tf.int32), -1, 0)
  return tf.reduce_sum(before, axis=1) - 1


def places(units: tf.Tensor) -> tf.Tensor:
  """Returns the columns `schema.PLACE_FEATURES`, float32 [M, P].

  Args:
    units: float32 [M, len(UNIT_FEATURES)].
  """
  return _unit_columns(units, schema.PLACE_FEATURES)


def slot_places(devices: tf.Tensor) -> tf.Tensor:
  """Returns the relative position of each device in its type, float32 [D].

  If [0, 1] is divided evenly among the devices of one type, the position of a
  device is the middle of its part.

  Args:
    devices: float32 [D, len(DEVICE_FEATURES)].
  """
  count = tf.reduce_sum(tf.cast(_same_type(devices), tf.float32), axis=1)
  return (tf.cast(device_slots(devices), tf.float32) + .5) / count


def unit_inputs(units: tf.Tensor, edges: tf.Tensor, edge_bytes: tf.Tensor,
                allowed: tf.Tensor, devices: tf.Tensor) -> tf.Tensor:
  """Returns inputs that describe units, their edges, the graph and cluster.

  Args:
    units: float32 [M, len(UNIT_FEATURES)].
    edges: int32 [E, 2], producer and consumer.
    edge_bytes: float32 [E], bytes that each edge carries.
    allowed: bool [M, D], allowed devices of each unit.
    devices: float32 [D, len(DEVICE_FEATURES)].

  Returns:
    float32 [M, F].
  """
  own = tf.concat([
      _log1p(
          _unit_columns(units, list(UNIT_SCALES))
          / tf.constant(list(UNIT_SCALES.values()), tf.float32)) / 2.0,
      _relative(units),
      _transfers(units, edges, edge_bytes, devices),
      _choices(allowed, devices),
  ], axis=1)  # [M, F1]
  shared = tf.concat([
      _whole_graph(units, edge_bytes, devices),
      tf.reduce_mean(device_inputs(devices), axis=0)
  ], axis=0)  # [F2]
  shared = tf.ones_like(own[:, :1]) * shared  # [M, F2]
  return tf.concat([own, norms.standardize(own), shared], axis=1)


def _same_type(devices: tf.Tensor) -> tf.Tensor:
  """Returns whether two devices are of one type, bool [D, D]."""
  kind = _device_columns(devices, _TYPES)  # [D, 2]
  return tf.reduce_all(kind[:, None] == kind[None], axis=-1)


def _relative(units: tf.Tensor) -> tf.Tensor:
  """Returns features relative to means, longest path, or another device."""
  magnitude = _unit_columns(units, _BY_MEAN)
  ranks = _unit_columns(units, ('downward_rank_s', 'upward_rank_s'))
  level = _unit_columns(units, ('level',))
  times = _unit_columns(units, ('slowest_s', 'fastest_s')) + 1e-9
  along = tf.concat([ranks, tf.reduce_sum(ranks, axis=1, keepdims=True)], 1)
  return tf.concat([
      _log1p(tf.math.divide_no_nan(magnitude, tf.reduce_mean(magnitude,
                                                             axis=0))),
      tf.math.divide_no_nan(along, tf.reduce_max(ranks)),
      tf.math.divide_no_nan(level, tf.reduce_max(level)),
      _log_ratio(times[:, :1], times[:, 1:]),
  ], axis=1)


def _transfers(units: tf.Tensor, edges: tf.Tensor, edge_bytes: tf.Tensor,
               devices: tf.Tensor) -> tf.Tensor:
  """Returns the bytes that each unit sends and receives, and their seconds.

  Sums and maxima over a unit's edges are given as logarithms of the bytes, and
  of the seconds of transfer relative to the mean computing time of units and to
  the unit's own.
  """
  fastest_s = _unit_columns(units, ('fastest_s',))  # [M, 1]
  moved = tf.nn.relu(
      tf.stack(
          [
              pool(edge_bytes, edges[:, receiver],
                   tf.shape(units)[0])
              for receiver in (1, 0)  # sent to a unit, sent by it
              for pool in (tf.math.unsorted_segment_sum,
                           tf.math.unsorted_segment_max)
          ],
          axis=1))  # [M, 4]
  seconds = moved / _link_speed(devices)
  return tf.concat([
      _log1p(moved / 1e3) / 2.0,
      _log1p(tf.math.divide_no_nan(seconds, tf.reduce_mean(fastest_s))),
      _log1p(seconds / (fastest_s + 1e-7)),
  ], axis=1)


def _choices(allowed: tf.Tensor, devices: tf.Tensor) -> tf.Tensor:
  """Returns how free a unit is.

  The columns are: share of the devices that are allowed, whether at most one
  is, whether any CPU is, and whether any GPU is.
  """
  free = tf.cast(allowed, tf.float32)  # [M, D]
  number = tf.reduce_sum(free, axis=1, keepdims=True)  # [M, 1]
  of_type = tf.matmul(free, _device_columns(devices, _TYPES))  # [M, 2]
  return tf.concat([
      tf.reduce_mean(free, axis=1, keepdims=True),
      tf.cast(number < 1.5, tf.float32),
      tf.cast(of_type > 0.5, tf.float32),
  ], axis=1)


def _whole_graph(units: tf.Tensor, edge_bytes: tf.Tensor,
                 devices: tf.Tensor) -> tf.Tensor:
  """Returns size, parallelism, communication and memory need, float32 [4]."""
  all_s = tf.reduce_sum(_unit_columns(units, ('fastest_s',)))
  longest_s = tf.reduce_max(
      _unit_columns(units, ('downward_rank_s', 'upward_rank_s')))
  sent_s = tf.reduce_sum(edge_bytes) / _link_speed(devices)
  params = tf.reduce_sum(_unit_columns(units, ('param_bytes',)))
  memory = tf.reduce_mean(_device_columns(devices, ('memory_bytes',)))
  shares = tf.math.divide_no_nan(tf.stack([all_s, sent_s, params]),
                                 tf.stack([longest_s, all_s, memory]))
  return tf.concat([[_log_count(units) / 10.0], _log1p(shares)], axis=0)


def _unit_columns(units: tf.Tensor, names: Sequence[str]) -> tf.Tensor:
  return tf.gather(units, [schema.UNIT_FEATURES.index(name) for name in names],
                   axis=1)


def _device_columns(devices: tf.Tensor,
                    names: tuple[str, ...] | Mapping[str, float]) -> tf.Tensor:
  return tf.gather(devices,
                   [schema.DEVICE_FEATURES.index(name) for name in names],
                   axis=1)


def _link_speed(devices: tf.Tensor) -> tf.Tensor:
  return tf.clip_by_value(
      tf.reduce_mean(_device_columns(devices, ('link_bytes_per_s',))), 1e6,
      1e15)


def _log_count(rows: tf.Tensor) -> tf.Tensor:
  return tf.math.log(tf.cast(tf.shape(rows)[0], tf.float32))


def _log1p(value: tf.Tensor) -> tf.Tensor:
  return tf.math.log1p(value) / 5.0


def _log_ratio(value: tf.Tensor,
               scale: tf.Tensor | Sequence[float]) -> tf.Tensor:
  # A single device has no links, so its figures may be zero or infinite.
  return tf.math.log(tf.clip_by_value(value / scale, 1e-6, 1e6)) / 5.0
