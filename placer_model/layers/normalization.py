"""Raw features to inputs of order one, in TensorFlow ops.

Magnitudes span twelve decades, so all are taken as logarithms: once at a fixed
scale, which tells a microsecond from a second, and once relative to the
graph's own mean or critical path, which is the same for a graph and for the
same graph a hundred times larger. Each is also given standardized over the
graph, so that units differ by as much as they can. This runs inside the
exported policy, so training and serving cannot disagree about it.
"""

from __future__ import annotations

from typing import Mapping, Sequence

import tensorflow as tf

from gdp_grappler.features import schema
from placer_model.layers import norms

# Value at which each column counts as small: log1p(value / scale) / 10.
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
# Value at which each column counts as ordinary: log(value / scale) / 5.
DEVICE_SCALES = {
    'memory_bytes': 2.0**34,
    'flops_per_s': 1e12,
    'bandwidth_bytes_per_s': 1e11,
    'launch_s': 1e-6,
    'link_latency_s': 1e-6,
    'link_bytes_per_s': 1e10,
    'devices_on_compute': 1.0,
}
# Columns also taken relative to their mean over the graph, and to the
# cluster's best.
_BY_MEAN = ('flops', 'io_bytes', 'output_bytes', 'param_bytes', 'input_bytes',
            'fastest_s', 'slowest_s')
_BY_BEST = ('memory_bytes', 'flops_per_s', 'bandwidth_bytes_per_s')
_TYPES = ('is_cpu', 'is_gpu')
_FLAGS = _TYPES + ('is_host',)


def device_inputs(devices: tf.Tensor) -> tf.Tensor:
  """Inputs that describe devices.

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
  """float32 [D], logarithm of each peak as a share of the cluster's best.

  Args:
    devices: float32 [D, len(DEVICE_FEATURES)].
  """
  peaks = _device_columns(devices, ('flops_per_s',))[:, 0]
  shares = tf.math.divide_no_nan(peaks, tf.reduce_max(peaks))
  return tf.math.log(tf.maximum(shares, 1e-3))


def device_slots(devices: tf.Tensor) -> tf.Tensor:
  """int32 [D], index of each device among the devices of its type."""
  before = tf.linalg.band_part(tf.cast(_alike(devices), tf.int32), -1, 0)
  return tf.reduce_sum(before, axis=1) - 1


def places(units: tf.Tensor) -> tf.Tensor:
  """float32 [M, P], `schema.PLACE_FEATURES`.

  Args:
    units: float32 [M, len(UNIT_FEATURES)].
  """
  return _unit_columns(units, schema.PLACE_FEATURES)


def slot_places(devices: tf.Tensor) -> tf.Tensor:
  """float32 [D], the middle of each device's share of those of its type.

  Args:
    devices: float32 [D, len(DEVICE_FEATURES)].
  """
  count = tf.reduce_sum(tf.cast(_alike(devices), tf.float32), axis=1)
  return (tf.cast(device_slots(devices), tf.float32) + .5) / count


def unit_inputs(units: tf.Tensor, edges: tf.Tensor, edge_bytes: tf.Tensor,
                allowed: tf.Tensor, devices: tf.Tensor) -> tf.Tensor:
  """Inputs that describe units, their edges, and graph and cluster as a whole.

  Args:
    units: float32 [M, len(UNIT_FEATURES)].
    edges: int32 [E, 2].
    edge_bytes: float32 [E].
    allowed: bool [M, D].
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


def _alike(devices: tf.Tensor) -> tf.Tensor:
  """bool [D, D], whether two are of one type."""
  kind = _device_columns(devices, _TYPES)  # [D, 2]
  return tf.reduce_all(kind[:, None] == kind[None], axis=-1)


def _relative(units: tf.Tensor) -> tf.Tensor:
  """Against the graph's means, its longest path, and between devices."""
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
  """Bytes in and out, sum and largest, and their seconds against computing."""
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
  """How free a unit is: share of devices, no choice, any CPU, any GPU."""
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
  """float32 [4]: size, parallelism, communication and memory pressure."""
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
  # A lone device has no links: zero or infinite figures must stay finite.
  return tf.math.log(tf.clip_by_value(value / scale, 1e-6, 1e6)) / 5.0
