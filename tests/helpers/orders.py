"""Graphs on which the order of ready ops matters, and their placements."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from helpers import clusters
from helpers import graphs


def late_chain(fillers: int):
  """A sender that FIFO starts last, and a receiver on another device.

  On GPU:0 there are `fillers` ops of 1 s that nobody needs, then the sender of
  1 s, all ready at once. The receiver on GPU:1 takes as long as the fillers
  together. A message takes 1 s.

  Returns:
    Graph, placement without an order, cost model.
  """
  graph = graphs.make_graph([(fillers, fillers + 1)], fillers + 2)
  placement = placement_lib.Placement([1] * (fillers + 1) + [2],
                                      clusters.make_cluster())
  return graph, placement, clusters.FixedCosts([1.] * (fillers + 1)
                                               + [float(fillers)])


def unrolled_lstm(layers: int, steps: int):
  """A training step of an LSTM, cell by cell; layer l belongs on GPU l.

  Every cell has a product forward, one backward, which the earlier steps and
  the layer below wait for, and one for the gradient of the weights, which only
  the update at the end waits for.

  Returns:
    Graph and devices [N] on a cluster of a CPU and `layers` GPUs.
  """
  edges, devices, flops, number = [], [], [], {}

  def op(key, layer, work, *inputs):
    number[key] = len(devices)
    devices.append(layer + 1)
    flops.append(work)
    edges.extend(
        (number[i], number[key], 1 << 18) for i in inputs if i in number)

  for t in range(steps):
    for l in range(layers):
      op(('forward', l, t), l, 1e9, ('forward', l - 1, t),
         ('forward', l, t - 1))
  op('loss', layers - 1, 1e8,
     *(('forward', layers - 1, t) for t in range(steps)))
  for t in reversed(range(steps)):
    for l in reversed(range(layers)):
      above = ('backward', l + 1, t) if l + 1 < layers else 'loss'
      # FIFO meets the gradient of the weights before the next step's products.
      op(('cell', l, t), l, 1e6, above, ('backward', l, t + 1),
         ('forward', l, t))
      op(('weights', l, t), l, 2e9, ('cell', l, t), ('forward', l, t))
      op(('backward', l, t), l, 1e9, ('cell', l, t))
  for l in range(layers):
    op(('update', l), l, 1e6, *(('weights', l, t) for t in range(steps)))
  graph = graphs.make_graph(edges, len(devices), name='lstm', flops=flops)
  return graph, np.array(devices, np.int32)
