"""The environment variables by which users configure the project.

`import tensorflow` loads this module in every program, so it imports little.
"""

from __future__ import annotations

import os
import pathlib
import stat

# The option `gdp_placement`: '1', '0' or a dict as JSON.
PLACEMENT = 'GDP_PLACEMENT'
# How many logical GPUs each card is cut into: 2 to 4, or 'auto'.
SPLIT = 'GDP_SPLIT'
# Folder for captures of the graphs that the pass receives.
CAPTURE_DIR = 'GDP_CAPTURE_DIR'
# Folder of the cache: decisions, profiles, measurements and workloads.
CACHE_DIR = 'GDP_CACHE_DIR'
# Folder of a network that `gdp_train` or `gdp_pretrain` wrote. It replaces the
# shipped network.
POLICY = 'GDP_POLICY'
# Any value but '' and '0' keeps the plugin out; read by plugin/loader.c.
DISABLE = 'GDP_DISABLE'

# Variables of TensorFlow and Keras.
LOG_LEVEL = 'TF_CPP_MIN_LOG_LEVEL'
QUIETEST = '3'  # Value of `LOG_LEVEL`: only fatal errors.
LEGACY_KERAS = 'TF_USE_LEGACY_KERAS'
# The user's values. They are read here, because `placer_model` and the program
# gdp load this module first and then change the variables.
_USERS_KERAS = os.environ.get(LEGACY_KERAS, '')
_USERS_DISABLE = os.environ.get(DISABLE, '')


def placement() -> str:
  """Returns the value of `PLACEMENT`; '' if it is not set."""
  return os.environ.get(PLACEMENT, '')


def split() -> str:
  """Returns the value of `SPLIT`; '' if it is not set."""
  return os.environ.get(SPLIT, '')


def capture_directory() -> str:
  """Returns the folder for captured graphs; '' if none are captured."""
  return os.environ.get(CAPTURE_DIR, '')


def users_keras() -> dict[str, str]:
  """Returns variables that select the user's Keras as `tf.keras` in a child."""
  return {LEGACY_KERAS: _USERS_KERAS} if _USERS_KERAS else {}


def is_disabled() -> bool:
  """Whether the user keeps the plugin out of programs."""
  return _USERS_DISABLE not in ('', '0')


def policy_folder() -> str:
  """Returns the folder of the user's network; '' for the shipped network."""
  return os.environ.get(POLICY, '')


def cache_folder() -> pathlib.Path:
  """Returns $GDP_CACHE_DIR, or gdp_grappler in the user's cache folder.

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
  """Returns a folder for temporary files that only this user can use.

  Another user may have made a folder of this name before. Then the result is a
  path below a file, where nothing can be written.
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
  """Returns variables that keep the plugin out of a program.

  The program sets them before it imports TensorFlow. Its child processes
  inherit them. So only programs may set them, not modules that are imported.
  """
  return {DISABLE: '1', LOG_LEVEL: os.environ.get(LOG_LEVEL, QUIETEST)}
