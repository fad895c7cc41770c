"""Examples: features of a problem, and good placements of it."""

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
  """An example: M units on D devices, and A answers.

  Attributes:
    features: Features of the units.
    answers: int32 [A, M], good placements; the fastest first, no two equal.
    excess: float32 [A], relative excess of each answer's step time over the
      fastest.
    equal_sets: Sets of equal devices, see `equal_devices.equal_sets`.
  """

  features: schema.GraphFeatures
  answers: np.ndarray
  excess: np.ndarray
  equal_sets: tuple[tuple[int, ...], ...]

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
                                   self.equal_sets)
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


def save(path: str | os.PathLike[str], examples: Sequence[Example]) -> None:
  """Replaces a file of examples in one step.

  Raises:
    GdpError: the file cannot be written.
  """
  arrays: dict[str, Any] = {}
  for number, example in enumerate(examples):
    for name in _FEATURES:
      arrays[f'{number}.{name}'] = np.array(getattr(example.features, name))
    arrays[f'{number}.answers'] = example.answers.astype(np.int8)
    arrays[f'{number}.excess'] = example.excess
    arrays[f'{number}.equal_sets'] = _labels(example)
  buffer = io.BytesIO()
  np.savez_compressed(buffer, count=np.array(len(examples)), **arrays)
  files.write_atomically(path, buffer.getvalue(), make_folder=True)


def load(path: str | os.PathLike[str]) -> list[Example]:
  """Returns the examples that `save` wrote.

  Raises:
    GdpError: there is no such file, or it is damaged.
  """
  try:
    arrays = array_files.read(path)
    return [_example(arrays, n) for n in range(int(arrays['count']))]
  except (OSError, ValueError, LookupError, TypeError) as error:
    raise errors.GdpError(
        f'Cannot read {path} as examples: {error}. Remove it.') from error


def _example(arrays: dict[str, np.ndarray], number: int) -> Example:
  own: dict[str, Any] = {name: arrays[f'{number}.{name}'] for name in _FEATURES}
  own['op_types'] = tuple(own['op_types'].tolist())
  labels = arrays[f'{number}.equal_sets']
  sets = tuple(
      tuple(np.flatnonzero(labels == label).tolist())
      for label in range(int(labels.max(initial=-1)) + 1))
  return Example(schema.GraphFeatures(**own),
                 arrays[f'{number}.answers'].astype(np.int32),
                 arrays[f'{number}.excess'], sets)


def _labels(example: Example) -> np.ndarray:
  """Returns the number of each device's set, int [D]; -1 if in none."""
  result = np.full(example.features.devices.shape[0], -1)
  for label, one in enumerate(example.equal_sets):
    result[list(one)] = label
  return result
