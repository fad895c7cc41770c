"""Trains a model that enlarges images; the last batch is a smaller one."""

import common
import keras
import numpy as np


def main():
  common.make_devices(2)
  common.set_option(True)
  keras.utils.set_random_seed(0)
  model = keras.Sequential([
      keras.Input((8, 8, 3)),
      keras.layers.Conv2D(4, 3, padding='same'),
      keras.layers.UpSampling2D(2),
      keras.layers.Conv2D(3, 3, padding='same')
  ])
  model.compile('sgd', 'mse')
  history = model.fit(np.ones((300, 8, 8, 3)), np.zeros((300, 16, 16, 3)),
                      batch_size=128, verbose=0)
  common.finish(loss=history.history['loss'])


if __name__ == '__main__':
  main()
