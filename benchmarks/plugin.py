"""Checks that the plugin is loaded, so that a benchmark measures the plugin."""

from __future__ import annotations

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
