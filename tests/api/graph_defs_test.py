import tensorflow as tf

import gdp_grappler


def test_a_placed_graph_has_the_price_of_one_device_of_the_graph(tmp_path):
  """Once its fetched ops stayed on their GPUs, so one device was slower."""
  with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, (512, 512))
    for _ in range(4):
      end = x
      for _ in range(3):
        end = tf.tanh(end @ x)
  path = str(tmp_path / 'placed.pb')
  first = gdp_grappler.place(graph, '2xP100', placer='round_robin')
  first.save(path)
  assert min(first.placement.counts()['GPU:0'],
             first.placement.counts()['GPU:1']) > 4
  for pins in ('keep', 'ignore'):
    again = gdp_grappler.place(path, '2xP100', placer='round_robin', pins=pins)
    assert again.graph.num_ops == first.graph.num_ops
    assert again.on_one_device.step_time_s == first.on_one_device.step_time_s
