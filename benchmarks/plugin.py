"""Whether what is measured is the plugin at all."""

from __future__ import annotations

from tensorflow.python.eager import context

from gdp_grappler import environment
from gdp_grappler import errors


def require() -> None:
  """Does nothing where `import tensorflow` has loaded the plugin.

  Raises:
    GdpError: it has not, so the option would be measured that nobody reads.
  """
  if not hasattr(context.Context, '_gdp_hook'):
    raise errors.GdpError(
        'TensorFlow has not loaded the plugin here, so the option does '
        'nothing. Install the package (make install) and use that '
        f'environment, without {environment.DISABLE}=1.')
