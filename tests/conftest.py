"""Settings that have to be made before TensorFlow is imported.

In this process `tf.keras` is Keras 2, for placer_model; Keras 3 is `keras`.
Other tests need the state after a bare `import tensorflow`. They run in
interpreters of their own, whose environment lacks TF_USE_LEGACY_KERAS.

The tests ignore environment variables that configure the package.
"""

import gc
import os
import signal

# `environment` records the user's choice of Keras when it is imported. This
# module sets the same variable below, and a process of tests may have set it
# for this one. Neither is the user's choice.
os.environ.pop('TF_USE_LEGACY_KERAS', None)
import gdp_grappler.environment  # noqa: F401
from helpers import fresh
from helpers import warm

# A shell starts background jobs with SIGINT ignored. Child processes inherit
# this setting, but some tests interrupt their child processes by SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Imports make no garbage. With fewer collections they take a fifth less time.
gc.set_threshold(100_000)

for _name in filter(fresh.steers, list(os.environ)):
  del os.environ[_name]
os.environ['TF_USE_LEGACY_KERAS'] = '1'
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
warm.install()


def pytest_collection_modifyitems(items):
  """Puts slow tests first, so that no worker runs one alone at the end."""
  items.sort(key=lambda item: item.get_closest_marker('e2e') is None)


def pytest_collection_finish():
  """Excludes all imported objects from later garbage collections."""
  gc.freeze()
