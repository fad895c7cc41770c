"""A SavedModel of v1, loaded and served by TensorFlow 2."""

import os
import tempfile

import common
import numpy as np
import tensorflow as tf

common.make_devices()
v1 = tf.compat.v1


def save(folder):
  """Saves layers with restored variables and initializers of many ops."""
  with tf.Graph().as_default(), v1.Session() as session:
    x = y = v1.placeholder(tf.float32, (None, 8), name='x')
    for i in range(10):
      v = v1.get_variable(f'v{i}', (8, 8), use_resource=bool(i % 2))
      y = tf.nn.relu(tf.matmul(y, v)) + .1
    session.run(v1.global_variables_initializer())
    v1.saved_model.simple_save(session, folder, {'x': x}, {'y': y})


def main():
  handler = common.Lines()
  logger = common.logging.getLogger('gdp_grappler')
  logger.addHandler(handler)
  logger.setLevel('INFO')
  x = tf.constant(np.eye(8, dtype=np.float32))
  with tempfile.TemporaryDirectory() as top:
    folder = os.path.join(top, 'model')
    save(folder)
    stock = tf.saved_model.load(folder).signatures['serving_default'](x=x)['y']
    common.set_option({'placer': 'round_robin', 'keep_best': False})
    model = tf.saved_model.load(folder)
  lines = handler.take()
  served = model.signatures['serving_default'](x=x)['y']
  common.finish(at_load=lines, at_call=handler.take(), same=bool(
      (served.numpy() == stock.numpy()).all()))


if __name__ == '__main__':
  main()
