"""Predicts steps with and without a calibration.

  python -m benchmarks.gpu.predictions DEVICE OUT_DIR

Runs as a process of its own, and needs no card. Writes
OUT_DIR/predictions.json. For each graph of OUT_DIR/steps.json it has the
seconds of the step as TensorFlow placed it, by the data sheet and by
OUT_DIR/calibration.json.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

from gdp_grappler import environment

os.environ.update(environment.without_plugin())

import numpy as np


def main(device: str, out_dir: str) -> None:
  """Predicts the measured steps."""
  from gdp_grappler.cluster import calibrated
  from gdp_grappler.cluster import calibration
  out = pathlib.Path(out_dir)
  before = _cluster(device)
  clusters = {'before_s': before}
  path = out / 'calibration.json'
  if path.exists():
    clusters['after_s'] = calibrated.applied(
        before, calibration.load(path),
        [d.name for d in before.devices if d.type == device])
  result: dict[str, Any] = {}
  for name, step in json.loads((out / 'steps.json').read_text()).items():
    if 'graph' in step:
      result[name] = {
          key: _predicted_s(step['graph'], cluster)
          for key, cluster in clusters.items()
      }
  (out / 'predictions.json').write_text(json.dumps(result, indent=1) + '\n')


def _cluster(device: str) -> Any:
  """The host and one device, by data sheets."""
  from gdp_grappler.cluster import cluster as cluster_lib
  from gdp_grappler.cluster import local_devices
  from gdp_grappler.plugin import step_costs
  names = [cluster_lib.local_name('CPU', 0)]
  names.append(cluster_lib.local_name(device, int(device == 'CPU')))
  # The program `steps` calls the train function itself, without `fit`.
  return step_costs.of_function(local_devices.assumed(names))


def _predicted_s(graph: str, cluster: Any) -> float:
  """Returns simulated seconds of a step on the devices of TensorFlow."""
  from gdp_grappler.problems import reading
  from gdp_grappler.problems import request
  step = reading.read(request.Request(graph), lambda unused: cluster,
                      lambda unused: None)
  devices = [cluster.device_index(name) for name in step.graph.devices]
  return float(step.simulator().price(step.graph,
                                      np.array([devices])).seconds[0])


if __name__ == '__main__':
  main(*sys.argv[1:])
