"""Lessons: features of a problem, and good placements of it."""

from __future__ import annotations

import dataclasses
import io
import os
from typing import Any, Sequence

import numpy as np

from gdp_grappler import array_files
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.features import schema
from placer_model.training import equal_devices

_FEATURES = tuple(
    field.name for field in dataclasses.fields(schema.GraphFeatures))
# Lower bound of log-probabilities, in nats.
_LEAST_NATS = -6.


@dataclasses.dataclass(frozen=True, eq=False)
class Example:
  """A lesson: M units on D devices, and A answers.

  Attributes:
    features: Features of the units.
    answers: int32 [A, M], good placements; the fastest first, no two equal.
    excess: float32 [A], relative excess of each answer's step time over the
      fastest.
    twins: Sets of devices that differ only in their names.
  """

  features: schema.GraphFeatures
  answers: np.ndarray
  excess: np.ndarray
  twins: tuple[tuple[int, ...], ...]

  def target(self, logits: np.ndarray, weights: np.ndarray,
             patience: float) -> np.ndarray:
    """Returns the answer that the network should learn, int32 [M].

    In each answer, equal devices are exchanged to make it as likely as possible
    under the network. Of several answers, the likeliest one is chosen, unless
    it is much slower than others. The network learns one answer instead of all,
    because the mean of two good placements is a bad placement.

    Args:
      logits: float32 [M, D], output of the network.
      weights: float32 [M], weight of each unit; their mean is 1.
      patience: Nats per unit that outweigh an excess of 1.
    """
    said = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    liking = np.maximum(said, _LEAST_NATS)
    images = equal_devices.aligned(self.answers, liking * weights[:, None],
                                   self.twins)
    units = np.arange(images.shape[1])
    scores = (liking[units, images] * weights).mean(axis=1)
    return images[int(np.argmax(scores - patience * self.excess))]

  @property
  def weights(self) -> np.ndarray:
    """Weights of the units, float32 [M], with a mean of 1.

    Half of the weight is equal for all units, half is proportional to work.
    """
    work = self.features.units[:, schema.UNIT_FEATURES.index('fastest_s')]
    share = work / max(float(work.mean()), 1e-30)
    return (.5 + .5 * share) / max(float((.5 + .5 * share).mean()), 1e-30)


def save(path: str | os.PathLike[str], lessons: Sequence[Example]) -> None:
  """Replaces a file of lessons in one step.

  Raises:
    GdpError: the file cannot be written.
  """
  arrays: dict[str, Any] = {}
  for number, lesson in enumerate(lessons):
    for name in _FEATURES:
      arrays[f'{number}.{name}'] = np.array(getattr(lesson.features, name))
    arrays[f'{number}.answers'] = lesson.answers.astype(np.int8)
    arrays[f'{number}.excess'] = lesson.excess
    arrays[f'{number}.twins'] = _labels(lesson)
  buffer = io.BytesIO()
  np.savez_compressed(buffer, count=np.array(len(lessons)), **arrays)
  files.write_atomically(path, buffer.getvalue(), make_folder=True)


def load(path: str | os.PathLike[str]) -> list[Example]:
  """Returns the lessons that `save` wrote.

  Raises:
    GdpError: there is no such file, or it is damaged.
  """
  try:
    arrays = array_files.read(path)
    return [_lesson(arrays, n) for n in range(int(arrays['count']))]
  except (OSError, ValueError, LookupError, TypeError) as error:
    raise errors.GdpError(
        f'Cannot read {path} as lessons: {error}. Remove it.') from error


def _lesson(arrays: dict[str, np.ndarray], number: int) -> Example:
  own: dict[str, Any] = {name: arrays[f'{number}.{name}'] for name in _FEATURES}
  own['op_types'] = tuple(own['op_types'].tolist())
  labels = arrays[f'{number}.twins']
  sets = tuple(
      tuple(np.flatnonzero(labels == label).tolist())
      for label in range(int(labels.max(initial=-1)) + 1))
  return Example(schema.GraphFeatures(**own),
                 arrays[f'{number}.answers'].astype(np.int32),
                 arrays[f'{number}.excess'], sets)


def _labels(lesson: Example) -> np.ndarray:
  """Returns the number of each device's set, int [D]; -1 if in none."""
  result = np.full(lesson.features.devices.shape[0], -1)
  for label, one in enumerate(lesson.twins):
    result[list(one)] = label
  return result
