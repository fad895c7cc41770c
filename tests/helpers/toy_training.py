"""A small placer and a simple price, whose results can be verified by hand."""

from __future__ import annotations

import itertools

import numpy as np
import tensorflow as tf

from gdp_grappler.cluster import constraints
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.features import schema
from helpers import clusters
from helpers import graphs
from placer_model.training import environment as environment_lib


class LoadAndCut(evaluator_lib.Evaluator):
  """A price: the seconds of the busiest device plus those of all transfers.

  Device d takes `speeds[d]` seconds per op. An edge between two devices takes
  `transfer_s`. Each op needs `param_bytes` of the memory of its device.
  """

  simulated = True

  def __init__(self, cluster, speeds=(4.0, 1.0, 1.0), transfer_s=0.5):
    self.cluster = cluster
    self._speeds, self._transfer_s = np.array(speeds), transfer_s

  def op_seconds(self, graph):
    return np.tile(self._speeds, (graph.num_ops, 1))

  def price(self, graph, devices, priorities=None):
    del priorities
    d = self.cluster.num_devices
    here = devices[:, :, None] == np.arange(d)  # [K, N, D]
    load = here.sum(axis=1) * self._speeds
    source, target = graph.edges[:, 0], graph.edges[:, 1]
    cut = (devices[:, source] != devices[:, target]).sum(axis=1)
    peaks = (here * graph.param_bytes[None, :, None]).sum(axis=1)
    return evaluator_lib.Prices.from_peaks(
        load.max(axis=1) + self._transfer_s * cut, peaks,
        self.cluster.pool_bytes)


class TablePlacer(tf.keras.layers.Layer):
  """One trainable logit per unit and device."""

  def __init__(self, allowed):
    super().__init__()
    self._mask = tf.constant(np.where(allowed, 0.0, -1e9), tf.float32)
    self.table = self.add_weight(name='table', shape=allowed.shape,
                                 initializer='zeros')

  def call(self, features):
    del features
    return self.table + self._mask


def chain_environment(num_ops=6, memory_bytes=1 << 40, param_bytes=0, **prices):
  """Returns a chain of ops, one unit each, on a CPU and two GPUs."""
  graph = graphs.chain(num_ops, param_bytes=param_bytes)
  cluster = clusters.make_cluster(memory_bytes=memory_bytes)
  return environment_lib.Environment(graph, cluster,
                                     LoadAndCut(cluster, **prices),
                                     np.arange(num_ops),
                                     features_of(graph, cluster))


def features_of(graph, cluster):
  """Returns features of a graph with one unit per op; figures are zero."""
  return schema.GraphFeatures(
      op_types=graph.op_types, units=np.zeros(
          (graph.num_ops, len(schema.UNIT_FEATURES)), np.float32),
      edges=graph.edges, edge_bytes=graph.edge_bytes.astype(np.float32),
      allowed=constraints.allowed_devices(graph, cluster), devices=np.zeros(
          (cluster.num_devices, len(schema.DEVICE_FEATURES)), np.float32))


def best_by_brute_force(environment):
  """Returns the lowest step time of all decisions."""
  choices = itertools.product(range(environment.cluster.num_devices),
                              repeat=environment.num_units)
  return environment.price(np.array(list(choices))).step_time_s.min()
