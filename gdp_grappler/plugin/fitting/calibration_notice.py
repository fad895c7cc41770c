"""Tells once that cards of this machine were never calibrated.

A calibration occupies the card for some time, so it runs only if the user asks
for it.
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
    return  # The placement of a step reports this error.
  for title in titles:
    notices.say_once(
        f'{title} was never calibrated: steps are priced by its data sheet. '
        'Run `gdp calibrate --device=GPU:N` (half a minute; N is the number of '
        'this card) to price them by measurements')
