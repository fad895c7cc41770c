"""Checkpoints of a run, and whose run a model directory holds."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any, Mapping

import tensorflow as tf

from gdp_grappler import errors
from placer_model.training import json_files

_KEEP = 2
# What TensorFlow raises over a damaged checkpoint, or one of another network.
_UNREADABLE = (tf.errors.OpError, AssertionError, ValueError, LookupError)


class Checkpoints:
  """The checkpoints under `directory`, the newest two."""

  def __init__(self, directory: pathlib.Path,
               checkpoint: tf.train.Checkpoint) -> None:
    self._directory = directory
    self._checkpoint = checkpoint
    self._manager = tf.train.CheckpointManager(checkpoint, str(directory),
                                               max_to_keep=_KEEP)

  def restore(self) -> bool:
    """Loads the newest; returns whether there was one.

    Raises:
      GdpError: it is damaged or of another network.
    """
    newest = self._manager.latest_checkpoint
    if newest is None:
      return False
    try:
      self._checkpoint.restore(newest).assert_existing_objects_matched()
    except _UNREADABLE as error:
      raise errors.GdpError(
          f'Checkpoint {newest} cannot be loaded: {_first_line(error)}. '
          'Remove it to fall back on the one before, or give another '
          '--model_dir.') from error
    return True

  def save(self, iteration: int) -> None:
    """Writes one; older ones go only once it is complete.

    Raises:
      GdpError: it cannot be written; the previous one is intact.
    """
    prefix = self._directory / f'ckpt-{iteration}'
    try:
      self._manager.save(checkpoint_number=iteration)
    except (tf.errors.OpError, OSError) as error:
      self._remove_remains(prefix.name)
      previous = self._manager.latest_checkpoint
      kept = (f'The checkpoint of iteration {previous.rsplit("-", 1)[-1]} is '
              'intact. ' if previous else '')
      raise errors.GdpError(
          f'Cannot write checkpoint {prefix}: {_first_line(error)}. {kept}'
          'Free some space and run the same command to go on.') from error

  def _remove_remains(self, name: str) -> None:
    """Frees what a failed save left behind."""
    if str(self._directory / name) == self._manager.latest_checkpoint:
      return
    for path in self._directory.glob(f'{name}[._]*'):
      if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
      else:
        path.unlink(missing_ok=True)


def load_placer(directory: pathlib.Path, placer: tf.keras.layers.Layer) -> None:
  """Gives a placer the weights of the newest checkpoint of another run.

  Raises:
    GdpError: there is none, or its network has another shape.
  """
  newest = tf.train.latest_checkpoint(str(directory))
  if newest is None:
    raise errors.GdpError(f'There is no checkpoint in {directory}. Give the '
                          '--model_dir of a finished run.')
  try:
    status = tf.train.Checkpoint(placer=placer).restore(newest)
    status.expect_partial().assert_existing_objects_matched()
  except _UNREADABLE as error:
    raise errors.GdpError(
        f'The weights in {newest} do not fit this network: '
        f'{_first_line(error)}. Give a run with the same --config.') from error


def claim(model_dir: pathlib.Path, identity: Mapping[str, Any]) -> None:
  """Makes `model_dir` the home of a run, or checks that it already is.

  Args:
    model_dir: May be missing, empty or hold a run.
    identity: All that has to be equal for a run to go on; JSON.

  Raises:
    GdpError: it holds another run; nothing was changed. Or it cannot be
      written.
  """
  path = model_dir / 'config.json'
  found = json_files.read_json(path)
  if found is None:
    if (model_dir / 'checkpoints').is_dir():
      raise errors.GdpError(
          f'{model_dir} has checkpoints but no config.json that tells whose '
          'they are. Give another --model_dir.')
    json_files.write_json(path, dict(identity))
    return
  different = [key for key in identity if found.get(key) != identity[key]]
  if different:
    raise errors.GdpError(
        f'{model_dir} holds a run with another '
        f'{_differences(found, identity, different[0])}. Give another '
        '--model_dir, or the flags of that run to continue it.')


def _differences(found: Mapping[str, Any], identity: Mapping[str, Any],
                 key: str) -> str:
  """'seed (0 there, 1 here)', into nested fields."""
  there, here = found.get(key), identity[key]
  if isinstance(there, dict) and isinstance(here, dict):
    for inner in here:
      if there.get(inner) != here[inner]:
        return f'{key} {_differences(there, here, inner)}'
  return f'{key} ({_short(there)} there, {_short(here)} here)'


def _short(value: object) -> str:
  text = str(value)
  return text if len(text) <= 60 else text[:57] + '...'


def _first_line(error: Exception) -> str:
  text = getattr(error, 'message', None) or str(error)
  return text.strip().splitlines()[0].rstrip('.') if text.strip() else type(
      error).__name__
