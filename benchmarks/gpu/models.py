"""Models whose steps are measured, beside `benchmarks.keras_models`."""

from __future__ import annotations

from typing import Any

import keras

_CLASSES = 1000


def resnet50() -> keras.Model:
  """Batches of 64."""
  return _of_images(keras.applications.ResNet50, 224, 64)


def mobilenet() -> keras.Model:
  """Depthwise convolutions; batches of 64."""
  return _of_images(keras.applications.MobileNet, 224, 64)


def vgg16() -> keras.Model:
  """Large convolutions and large products; batches of 32."""
  return _of_images(keras.applications.VGG16, 224, 32)


def _of_images(application: Any, side: int, batch: int) -> keras.Model:
  model = application(
      weights=None, classes=_CLASSES, input_tensor=keras.Input(
          (side, side, 3), batch_size=batch))
  model.compile('sgd', keras.losses.SparseCategoricalCrossentropy())
  return model
