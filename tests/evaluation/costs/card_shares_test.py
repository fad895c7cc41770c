"""Shares that can be worked out by hand."""

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import card_shares
from gdp_grappler.evaluation.costs import roofline
from helpers import clusters
from helpers import graphs


def _cut(threads=1000):
  cluster = clusters.make_cluster(2)
  return dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(d, launch=cluster_lib.ASYNCHRONOUS, card='card',
                              resident_threads=threads) if d.type ==
          'GPU' else d for d in cluster.devices))


def _shares(op_type='Relu', output_bytes=4, flops=0., io_bytes=0., seconds=1.,
            cluster=None, executions=1):
  graph = graphs.chain(
      2, tensor_bytes=output_bytes, op_types=[op_type] * 2, flops=flops,
      io_bytes=io_bytes).replace(executions=np.array([executions, 1]))
  cluster = cluster or _cut()
  return card_shares.of(graph, cluster,
                        np.full((2, cluster.num_devices), seconds))[0].tolist()


def test_a_thread_for_each_output():
  # 250 numbers, and the card holds 1000 threads.
  assert _shares(output_bytes=1000) == [1, .25, .25]
  assert _shares(output_bytes=40_000) == [1, 1, 1]


def test_a_thread_of_a_product_makes_eight_outputs():
  assert _shares('MatMul', output_bytes=16_000) == [1, .5, .5]


def test_arithmetic_of_those_seconds():
  # 1e9 FLOP/s, of which half is reached.
  assert _shares(flops=1e8) == [1, .2, .2]
  assert _shares(flops=1e8, seconds=2.) == [1, .1, .1]


def test_elements_and_arithmetic_of_float16():
  cluster = _cut()
  cluster = dataclasses.replace(
      cluster, devices=tuple(
          dataclasses.replace(d, float16_rate=4.) for d in cluster.devices))
  graph = graphs.chain(2, tensor_bytes=8000, op_types=['MatMul'] * 2, flops=1e8)
  graph = graph.replace(element_types_by_name={graph.names[0]: 'float16'})
  shares = card_shares.of(graph, cluster, np.full((2, 3), .5))
  assert shares[0].tolist() == [1, .5, .5]
  # Two products of float32 have as many bytes in half as many outputs.
  assert shares[1].tolist() == [1, .4, .4]


def test_traffic_of_those_seconds():
  assert _shares(io_bytes=3e8) == [1, .3, .3]


def test_seconds_are_of_all_executions():
  assert _shares(io_bytes=3e8, seconds=4., executions=4) == [1, .3, .3]


def test_no_kernel_is_smaller_than_a_warp():
  assert _shares() == [1, .032, .032]


def test_what_nobody_knows_fills_the_card():
  assert _shares(cluster=_cut(0)) == [1, 1, 1]
  assert _shares(cluster=clusters.make_cluster(2)) == [1, 1, 1]


def test_cost_models_say_the_same():
  graph, cluster = graphs.chain(3), _cut()
  seconds = roofline.Roofline().op_seconds(graph, cluster)
  assert (roofline.Roofline().card_shares(graph, cluster,
                                          seconds) == card_shares.of(
                                              graph, cluster, seconds)).all()
