"""Settings that have to be made before anything imports TensorFlow.

In this process `tf.keras` is Keras 2, for placer_model; Keras 3 is `keras`.
What users see after a bare `import tensorflow` is tested in interpreters of
their own, whose environment lacks TF_USE_LEGACY_KERAS.

What steers us where the tests are run is not for the tests.
"""

import gc
import os

# Keras is chosen below, in a process that starts this one as well; that is not
# the user's choice, for which this module looks when it is imported.
os.environ.pop('TF_USE_LEGACY_KERAS', None)
import gdp_grappler.environment  # noqa: F401
from helpers import fresh
from helpers import warm

# What is imported is no garbage, and looking for some costs a fifth of that.
gc.set_threshold(100_000)

for _name in filter(fresh.steers, list(os.environ)):
  del os.environ[_name]
os.environ['TF_USE_LEGACY_KERAS'] = '1'
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
warm.install()


def pytest_collection_modifyitems(items):
  """What takes long begins first, so that no worker is left with it."""
  items.sort(key=lambda item: item.get_closest_marker('e2e') is None)


def pytest_collection_finish():
  """Nor does a collection have to look at it again."""
  gc.freeze()
