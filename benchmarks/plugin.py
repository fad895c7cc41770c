"""What a benchmark of the plugin needs: the plugin, and several devices."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler import environment
from gdp_grappler import errors


def require() -> None:
  """Checks that `import tensorflow` has loaded the plugin.

  Raises:
    GdpError: the plugin is not loaded, so the measured option has no effect.
  """
  if not hasattr(context.Context, '_gdp_hook'):
    raise errors.GdpError(
        'TensorFlow has not loaded the plugin here, so the option does '
        'nothing. Install the package (make install) and use that '
        f'environment, without {environment.DISABLE}=1.')


def cut_cpu(count: int) -> None:
  """Cuts the CPU into logical devices, before TensorFlow makes any devices.

  Args:
    count: Number of logical devices.
  """
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * count)
