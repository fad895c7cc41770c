"""Calibrates a CPU as if it were a card, for dry runs.

  python -m benchmarks.gpu.dry_calibration OUTPUT SECONDS
"""

from __future__ import annotations

import os
import sys

from gdp_grappler import environment

os.environ.update(environment.without_plugin())

from gdp_grappler.evaluation.calibrating import calibrator


def main(output: str, seconds: str) -> None:
  """Writes the calibration that was measured within the time."""
  options = calibrator.CalibrationOptions(float(seconds), device_type='CPU')
  calibrator.calibrate(options, print).save(output)


if __name__ == '__main__':
  main(*sys.argv[1:])
