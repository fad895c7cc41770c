"""A problem as the placer network sees it, and good answers to it."""

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
# What is less likely is as unlikely.
_LEAST_NATS = -6.


@dataclasses.dataclass(frozen=True, eq=False)
class Example:
  """M units on D devices, and A answers.

  Attributes:
    features: Of the units.
    answers: int32 [A, M], devices; the fastest first, none twice.
    excess: float32 [A], how much longer each takes than the fastest, as a
      share.
    twins: Sets of devices that nothing but their names tells apart.
  """

  features: schema.GraphFeatures
  answers: np.ndarray
  excess: np.ndarray
  twins: tuple[tuple[int, ...], ...]

  def target(self, logits: np.ndarray, weights: np.ndarray,
             patience: float) -> np.ndarray:
    """int32 [M], the answer that is to be said.

    Equal devices exchanged as the network likes it best, and of several answers
    that which is nearest to what it says, unless it takes much longer: to learn
    the mean of two good placements is to learn a bad one.

    Args:
      logits: float32 [M, D], what the network says.
      weights: float32 [M], how much each unit counts; their mean is 1.
      patience: Nats per unit that an excess of one counts for.
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
    """float32 [M], half alike, half by their work; their mean is 1."""
    work = self.features.units[:, schema.UNIT_FEATURES.index('fastest_s')]
    share = work / max(float(work.mean()), 1e-30)
    return (.5 + .5 * share) / max(float((.5 + .5 * share).mean()), 1e-30)


def save(path: str | os.PathLike[str], lessons: Sequence[Example]) -> None:
  """Replaces a file in one step.

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
  """What `save` wrote.

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
  """int [D], the set of each device; -1 for those in none."""
  result = np.full(lesson.features.devices.shape[0], -1)
  for label, one in enumerate(lesson.twins):
    result[list(one)] = label
  return result
