"""Tells once that cards of this machine were never calibrated.

Nothing is measured unasked, because a calibration occupies the card for half a
minute.
"""

from __future__ import annotations

from gdp_grappler import errors
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import nvml
from gdp_grappler.plugin import notices


def tell_once(source: nvml.Source | None = None) -> None:
  """Tells the user about uncalibrated devices of this process.

  Args:
    source: The source of data about cards; by default NVML.
  """
  try:
    titles = local_devices.uncalibrated(source)
  except errors.GdpError:
    return  # Whoever places says what is wrong with the devices.
  for title in titles:
    notices.say_once(
        f'{title} was never calibrated: steps are priced by its data sheet. '
        'Run `gdp calibrate` (half a minute) to price them by measurements of '
        'this card')
