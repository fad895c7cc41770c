"""Checkpoints of a run, and the identity of the run in a model directory."""

from __future__ import annotations

import json
import pathlib
import re
import time
from typing import Any, Callable, Mapping

from absl import logging
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler import files
from placer_model import config as config_lib
from placer_model import run_folder
from placer_model.training import json_files

# Checkpoints on disk. The older one serves if the newer one is damaged.
_KEEP = 2
_IDENTITY = 'config.json'
# Fields of config.json in all releases.
_FIELDS = ('graph', 'cluster', 'reward', 'seed')
# Unfinished files and folders of a killed run.
_LEFT_BY_THE_KILLED = (
    '.policy.????????',
    *(f'{folder}{files.UNFINISHED}' for folder in ('', 'plans/', 'policy/')))
# 'ckpt-ITERATION', with '-1', '-2', ... for further ones of that iteration.
_NAME = re.compile(r'ckpt-(\d+)(?:-(\d+))?(?:[._]|$)')
_ANY = 'ckpt-*'
# Errors of TensorFlow for a damaged checkpoint, or for one of another network.
# A damaged index may state a size that exceeds all memory.
_UNREADABLE = (tf.errors.OpError, AssertionError, ValueError, LookupError,
               MemoryError)


class Checkpoints:
  """The checkpoints in a directory, of which only the newest are kept.

  The files themselves say which checkpoints exist, so no list of them can be
  lost or damaged. A new checkpoint never overwrites an old one. So if the
  process is killed while it writes, the others stay whole.
  """

  def __init__(self, directory: pathlib.Path,
               checkpoint: tf.train.Checkpoint) -> None:
    """Opens a directory, which may be missing.

    Args:
      directory: Directory that holds only checkpoints.
      checkpoint: The objects to save and restore.
    """
    self._directory = directory
    self._checkpoint = checkpoint
    # Names of damaged checkpoints, which do not count towards `_KEEP`.
    self._damaged: set[str] = set()

  def restore(self, tell: Callable[[str], None]) -> bool:
    """Restores the newest sound checkpoint; returns whether there is any.

    Args:
      tell: Called with one line for each damaged checkpoint.

    Raises:
      GdpError: all checkpoints are damaged or of another network.
    """
    found, complaint = newest_first(self._directory), ''
    for path in found:
      try:
        self._checkpoint.read(str(path)).assert_existing_objects_matched()
        return True
      except _UNREADABLE as error:
        said = f'{path} cannot be loaded: {_first_line(error)}'
        complaint = complaint or said
        self._damaged.add(path.name)
        tell(f'Checkpoint {said}.')
    if found or any(self._directory.glob(_ANY)):
      complaint = complaint or f'none in {self._directory} is complete'
      raise errors.GdpError(
          f'There is no sound checkpoint: {complaint}. Give --restart to begin '
          'anew and lose what was learned, or another --model_dir.')
    return False

  def save(self, iteration: int) -> None:
    """Writes a checkpoint, and then removes old ones.

    Raises:
      GdpError: it cannot be written; the previous one is intact.
    """
    before = [
        path for path in newest_first(self._directory)
        if path.name not in self._damaged
    ]
    path = self._new(iteration)
    try:
      self._checkpoint.write(str(path))
    except (tf.errors.OpError, OSError) as error:
      _remove(self._directory, path.name)
      kept = ''
      if before:
        intact, _ = _number(before[0].name)
        kept = f'The checkpoint of iteration {intact} is intact. '
      raise errors.GdpError(
          f'Cannot write checkpoint {path}: {_first_line(error)}. {kept}'
          f'Free some space and run {run_folder.SAME_COMMAND} to go '
          'on.') from error
    keep = {path.name, *(old.name for old in before[:_KEEP - 1])}
    for name in {
        found.name.split('.')[0].removesuffix('_temp')
        for found in self._directory.glob(_ANY)
    } - keep:
      _remove(self._directory, name)

  def _new(self, iteration: int) -> pathlib.Path:
    """Returns a new name that follows the existing ones."""
    there = [
        _number(path.name)[1] for path in self._directory.glob(_ANY)
        if _number(path.name)[0] == iteration
    ]
    number = max(there, default=-1) + 1
    return self._directory / (f'ckpt-{iteration}' + f'-{number}' * (number > 0))


class Saver:
  """Decides when to write a checkpoint."""

  def __init__(self, store: Checkpoints, iteration: Callable[[], int],
               every: int, every_s: float) -> None:
    """Writes nothing yet.

    Args:
      store: Checkpoints of the run.
      iteration: Returns the number of iterations that the run has done.
      every: Iterations after which a checkpoint is due.
      every_s: Seconds after which it is due, if that is earlier.
    """
    self._store, self._iteration = store, iteration
    self._every, self._every_s = every, every_s
    self._saved_s = time.monotonic()
    self._saved_iteration = iteration()

  def save_if_due(self) -> None:
    """Saves if enough time or enough iterations have passed."""
    age_s = time.monotonic() - self._saved_s
    new = self._iteration() - self._saved_iteration
    if age_s >= self._every_s or new >= self._every:
      self.save()

  def save(self) -> None:
    """Writes a checkpoint now."""
    self._store.save(self._iteration())
    self._saved_s = time.monotonic()
    self._saved_iteration = self._iteration()


def newest_first(directory: pathlib.Path) -> list[pathlib.Path]:
  """Returns complete checkpoints, named without '.index', damaged ones too.

  A checkpoint with something else than a regular file, such as a pipe, is left
  out, because reading it might block.
  """
  found = [
      path.with_suffix('') for path in directory.glob('ckpt-*.index')
      if _NAME.match(path.name) and all(
          part.is_file() for part in directory.glob(f'{path.stem}.*'))
  ]
  return sorted(found, key=lambda path: _number(path.name), reverse=True)


def _number(name: str) -> tuple[int, int]:
  """Returns the two numbers of a checkpoint's name, 0 for a missing second one.

  The result is (-1, -1) for other files.
  """
  match = _NAME.match(name)
  return (int(match[1]), int(match[2] or 0)) if match else (-1, -1)


def _remove(directory: pathlib.Path, name: str) -> None:
  """Removes all files of a checkpoint, complete or not, the index first."""
  run_folder.remove(
      sorted(directory.glob(f'{name}[._]*'),
             key=lambda path: path.suffix != '.index'))


def load_placer(directory: pathlib.Path, placer: tf.keras.layers.Layer,
                tell: Callable[[str], None] = logging.warning) -> None:
  """Restores a network from the newest sound checkpoint of another run.

  Args:
    directory: Directory of the checkpoints.
    placer: Network of the same shape.
    tell: Called with one line for each damaged checkpoint, if another one is
      sound.

  Raises:
    GdpError: there is no sound checkpoint, or its network has another shape.
  """
  found, complaints = newest_first(directory), list[str]()
  if not found:
    raise errors.GdpError(f'There is no checkpoint in {directory}. Give the '
                          '--model_dir of a finished run.')
  for path in found:
    try:
      status = tf.train.Checkpoint(placer=placer).read(str(path))
      status.expect_partial().assert_existing_objects_matched()
    except _UNREADABLE as error:
      complaints.append(f'{path}: {_first_line(error)}')
      continue
    for complaint in complaints:
      tell(f'Checkpoint {complaint}. {path.name} is taken.')
    return
  raise errors.GdpError(
      f'No weights in {directory} fit this network: {complaints[0]}. Give a '
      'run with the same --config, or the folder "policy" that it exported.')


def placer_fields(model_dir: pathlib.Path) -> Mapping[str, Any]:
  """Returns the settings of a run's network; none if they are not known.

  Args:
    model_dir: Model directory of the run.

  Raises:
    GdpError: config.json is unreadable.
  """
  found = json_files.read_json(model_dir / _IDENTITY)
  fields = found.get('placer') if isinstance(found, dict) else None
  return fields if isinstance(fields, dict) else {}


def discard(model_dir: pathlib.Path) -> None:
  """Removes what a run has learned, but neither measurements nor exports.

  Raises:
    GdpError: the directory has files of these names, but its config.json is not
      that of a run. Nothing was removed.
  """
  own = run_folder.own_json(model_dir / _IDENTITY, _FIELDS)
  run_folder.remove_own(
      model_dir, ('checkpoints', 'tensorboard', _IDENTITY, 'results.json'), own)
  if own:
    _remove_unfinished(model_dir)


def claim(model_dir: pathlib.Path, identity: Mapping[str, Any]) -> None:
  """Makes `model_dir` the directory of a run, or checks that it already is.

  Unfinished files of a killed run are removed.

  Args:
    model_dir: Directory that may be missing, be empty or hold a run.
    identity: JSON object that has to be equal when a run is resumed.

  Raises:
    GdpError: the directory holds another run, and nothing was changed; or it
      cannot be written.
  """
  identity = json.loads(json.dumps(dict(identity)))  # Lists, as in the file.
  path = model_dir / _IDENTITY
  found = json_files.read_json(path)
  if found is None:
    for name in ('checkpoints', 'results.json'):
      if (model_dir / name).exists():
        raise errors.GdpError(
            f'{model_dir} has {name} but no {_IDENTITY} that tells whose it '
            'is. Give another --model_dir.')
    json_files.write_json(path, identity)
    return
  if not isinstance(found, dict):
    raise errors.GdpError(
        f'{path} does not tell whose run this is: it is no object. Restore it, '
        'or give another --model_dir.')
  # The file of an older run may lack these. Then `searches` was 0, and
  # `may_round` is unknown.
  found = {'searches': 0, 'may_round': identity.get('may_round'), **found}
  if isinstance(found.get('placer'), dict):
    found['placer'] = config_lib.known_fields(found['placer'])
  different = [key for key in identity if found.get(key) != identity[key]]
  if different:
    raise errors.GdpError(
        f'{model_dir} holds a run with another '
        f'{_differences(found, identity, different[0])}. Give another '
        '--model_dir, or the flags of that run to continue it.')
  _remove_unfinished(model_dir)


def _remove_unfinished(model_dir: pathlib.Path) -> None:
  """Removes what a killed run has left in its directory."""
  for pattern in _LEFT_BY_THE_KILLED:
    run_folder.remove(model_dir.glob(pattern))


def _differences(found: Mapping[str, Any], identity: Mapping[str, Any],
                 key: str) -> str:
  """Returns 'seed (0 there, 1 here)', also for nested fields."""
  there, here = found.get(key), identity.get(key)
  if isinstance(there, dict) and isinstance(here, dict):
    for inner in {**here, **there}:
      if there.get(inner) != here.get(inner):
        return f'{key} {_differences(there, here, inner)}'
  return f'{key} ({_short(there)} there, {_short(here)} here)'


def _short(value: object) -> str:
  text = str(value)
  return text if len(text) <= 60 else text[:57] + '...'


def _first_line(error: Exception) -> str:
  if isinstance(error, MemoryError):
    return 'it claims to be larger than the memory'
  return errors.first_line(error)
