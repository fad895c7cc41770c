"""The environment variables that users steer the project with.

`import tensorflow` loads this module in every program, so it imports next to
nothing.
"""

from __future__ import annotations

import os
import pathlib
import stat

# The option `gdp_placement`: '1', '0' or a dict as JSON.
PLACEMENT = 'GDP_PLACEMENT'
# How many logical GPUs each card is cut into: 2 to 4, or 'auto'.
SPLIT = 'GDP_SPLIT'
# Where to write the graphs that the pass receives.
CAPTURE_DIR = 'GDP_CAPTURE_DIR'
# Where profiles, measurements and workloads are kept.
CACHE_DIR = 'GDP_CACHE_DIR'
# Folder of the policy that the placer "gdp" loads.
POLICY = 'GDP_POLICY'
# '1' keeps the plugin out; read by plugin/loader.c.
DISABLE = 'GDP_DISABLE'

# Of TensorFlow and Keras.
LOG_LEVEL = 'TF_CPP_MIN_LOG_LEVEL'
QUIETEST = '3'  # Of `LOG_LEVEL`.
LEGACY_KERAS = 'TF_USE_LEGACY_KERAS'
# As the user has it; `placer_model`, which sets it, loads this module before.
_USERS_KERAS = os.environ.get(LEGACY_KERAS, '')


def placement() -> str:
  """What the option is set to by `PLACEMENT`; '' for nothing."""
  return os.environ.get(PLACEMENT, '')


def split() -> str:
  """What cards are cut into by `SPLIT`; '' for nothing."""
  return os.environ.get(SPLIT, '')


def capture_directory() -> str:
  """Where to write the graphs that the pass receives; '' for nowhere."""
  return os.environ.get(CAPTURE_DIR, '')


def users_keras() -> dict[str, str]:
  """What makes `tf.keras` of another process what it is in the user's."""
  return {LEGACY_KERAS: _USERS_KERAS} if _USERS_KERAS else {}


def policy_folder() -> str:
  """The folder of the policy to load; '' for the one that is shipped."""
  return os.environ.get(POLICY, '')


def cache_folder() -> pathlib.Path:
  """$GDP_CACHE_DIR, or gdp_grappler in the user's cache folder.

  A user without a home has a private folder in the folder of temporary files.
  If that folder is not private, nothing can be kept.
  """
  if os.environ.get(CACHE_DIR):
    return pathlib.Path(os.environ[CACHE_DIR])
  base = os.environ.get('XDG_CACHE_HOME')
  try:
    return pathlib.Path(base or pathlib.Path.home() / '.cache') / 'gdp_grappler'
  except RuntimeError:  # No HOME, and a user that the system does not know.
    return _temporary_cache_folder()


def _temporary_cache_folder() -> pathlib.Path:
  """For this user alone; below a file, where nothing can be, if there is none.

  Others may write in the folder of temporary files, and may have been first.
  """
  import tempfile
  try:
    folder = pathlib.Path(tempfile.gettempdir(), f'gdp_grappler-{os.geteuid()}')
    folder.mkdir(0o700, exist_ok=True)
    status = folder.lstat()
    if (stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and
        not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)):
      return folder
  except OSError:
    pass
  return pathlib.Path(os.devnull, 'gdp_grappler')


def without_plugin() -> dict[str, str]:
  """What a program that places nothing itself sets for itself.

  Before it imports TensorFlow. What it starts inherits it; so that is for
  programs, not for modules that others import.
  """
  return {DISABLE: '1', LOG_LEVEL: os.environ.get(LOG_LEVEL, QUIETEST)}
