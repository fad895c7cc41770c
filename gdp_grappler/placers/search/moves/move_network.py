"""A small network that predicts the gains of moves, as plain arrays.

The network has one hidden layer and two outputs. The first output is the logit
of the probability that a move gains. The second output is the logarithm of the
gain if the move gains, as a share of the step. A file of weights holds only
numbers and names; loading it executes nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
from typing import Sequence

import numpy as np

from gdp_grappler import array_files
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import products
from gdp_grappler.features.moves import schema

# Standard deviations at which standardized features are clipped.
_MOST_DEVIATIONS = 5.
# Largest number of bytes of a file of weights.
_MOST_BYTES = 1 << 24
# Names of the arrays in a file of weights.
_ARRAYS = ('mean', 'deviation', 'hidden_weights', 'hidden_bias', 'weights',
           'bias')
# Outputs of the network: the probability of a gain and the gain.
OUTPUTS = 2


@dataclasses.dataclass(frozen=True, eq=False)
class MoveNetwork:
  """A network of F features and H hidden units.

  Attributes:
    features: [F], names of the features.
    mean: float32 [F], mean of each feature in the training data.
    deviation: float32 [F], standard deviation of each feature, positive.
    hidden_weights: float32 [F, H].
    hidden_bias: float32 [H].
    weights: float32 [H, 2].
    bias: float32 [2].
  """

  features: tuple[str, ...]
  mean: np.ndarray
  deviation: np.ndarray
  hidden_weights: np.ndarray
  hidden_bias: np.ndarray
  weights: np.ndarray
  bias: np.ndarray

  def __post_init__(self) -> None:
    count, hidden = len(self.features), np.size(self.hidden_bias)
    shapes = dict(
        zip(_ARRAYS, ((count,), (count,), (count, hidden), (hidden,),
                      (hidden, OUTPUTS), (OUTPUTS,))))
    object.__setattr__(self, 'features', tuple(self.features))
    for name, shape in shapes.items():
      array = np.array(getattr(self, name), np.float32)
      if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f'{name} has shape {list(array.shape)} or a value '
                         f'that is no number; {list(shape)} is needed.')
      array.setflags(write=False)
      object.__setattr__(self, name, array)
    if not (self.deviation > 0).all():
      raise ValueError('deviation has values that are not positive.')

  def standardized(self, features: np.ndarray) -> np.ndarray:
    """float32 [K, F], features less their means, in standard deviations.

    Args:
      features: float32 [K, F].
    """
    return np.clip((features - self.mean) / self.deviation, -_MOST_DEVIATIONS,
                   _MOST_DEVIATIONS)

  def predict(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logits of gaining and logarithms of the gains, float32 [K] each.

    Args:
      features: float32 [K, F].
    """
    hidden = products.product(self.standardized(features), self.hidden_weights)
    hidden = np.maximum(hidden + self.hidden_bias, 0)
    return tuple((products.product(hidden, self.weights) + self.bias).T)

  @property
  def digest(self) -> str:
    """64 hex digits of a hash of all names and numbers."""
    result = hashlib.sha256('\n'.join(self.features).encode())
    for name in _ARRAYS:
      result.update(f'\n{name}\n'.encode())
      result.update(np.ascontiguousarray(getattr(self, name)).tobytes())
    return result.hexdigest()


def untrained(network: MoveNetwork, rng: np.random.Generator) -> MoveNetwork:
  """An untrained network with the shape and the scale of another network.

  The weights are initialized as at the start of training (He et al., ICCV
  2015).

  Args:
    network: The other network.
    rng: Random numbers of the weights.
  """
  count, hidden = network.hidden_weights.shape
  return MoveNetwork(network.features, network.mean, network.deviation,
                     rng.normal(0, np.sqrt(2 / count), (count, hidden)),
                     np.zeros(hidden),
                     rng.normal(0, np.sqrt(1 / hidden), network.weights.shape),
                     np.zeros_like(network.bias))


def save(path: str | os.PathLike[str], network: MoveNetwork) -> None:
  """Writes a network to a file, atomically; equal networks give equal files.

  Args:
    path: The file; its folder is made.
    network: The network.

  Raises:
    GdpError: the file cannot be written. An older file is still there.
  """
  buffer = io.BytesIO()
  np.savez(buffer, features=np.array(network.features),
           digest=np.array(network.digest),
           **{name: getattr(network, name) for name in _ARRAYS})
  files.write_atomically(path, buffer.getvalue(), make_folder=True)


def load(path: str | os.PathLike[str],
         kinds: Sequence[str] | None = None) -> MoveNetwork:
  """Reads a network that `save` wrote.

  Args:
    path: The file.
    kinds: Kinds of moves. The network must have been trained on the features of
      this release for these kinds. None accepts any features.

  Raises:
    GdpError: the file is missing, damaged or too large, or the network was
      trained on other features.
  """
  try:
    arrays = array_files.read(path, _MOST_BYTES)
    network = MoveNetwork(tuple(arrays['features'].tolist()),
                          **{name: arrays[name] for name in _ARRAYS})
    digest = str(arrays['digest'])
  except (OSError, ValueError, LookupError, TypeError) as error:
    raise errors.GdpError(
        f'Cannot read {path} as weights of a move network: {error}. Train it '
        'again with gdp_pretrain.') from error
  if digest != network.digest:
    raise errors.GdpError(
        f'{path} does not hold what was written: its digest is another one. '
        'Copy it again, or train it again with gdp_pretrain.')
  if kinds is not None and network.features != schema.names(kinds):
    raise errors.GdpError(
        f'{path} was trained on other features of moves than this release has. '
        'Train it again with gdp_pretrain.')
  return network
