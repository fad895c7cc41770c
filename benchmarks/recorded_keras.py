"""Predicted and measured steps of Keras models on one H100.

`benchmarks.recorded_gpu` prints them.

The graphs are those that the pass received on that machine. The steps were
measured there by repeated calls of the train function (`tests/testdata/h100`).
The figures of [H100] in `op_families` were fitted to three of the graphs. The
transformer is held out. The MLP is held out only in part: slower elementwise
kernels or slower convolutions explain ResNet50's step equally well, and the
pair of rates was chosen that suits the MLP.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import pathlib
import tempfile
from typing import Any, Iterator

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.sources import origin
from gdp_grappler.graph.sources import sources
from gdp_grappler.plugin import step_costs

FOLDER = pathlib.Path(__file__).parents[1] / 'tests' / 'testdata' / 'h100'
_STEPS = 'keras_steps.json'
FITTED = ('cnn', 'lstm', 'resnet50')
KEPT_BACK = ('mlp', 'transformer')
CARD = 'H100'


@dataclasses.dataclass(frozen=True)
class Step:
  """A recorded graph, and predicted and measured seconds of its step.

  Attributes:
    graph: Name of the model.
    predicted_s: Simulated seconds, with those that a call takes.
    measured_s: Mean seconds of steps in a row; None if not measured.
    alone_s: Mean seconds of a step if its loss is read before the next step
      begins; None if not measured.
  """

  graph: str
  predicted_s: float
  measured_s: float | None
  alone_s: float | None


def steps(cluster: cluster_lib.Cluster | None = None,
          folder: pathlib.Path = FOLDER) -> Iterator[Step]:
  """Returns the steps of all graphs of a folder, by name.

  Args:
    cluster: One CPU and one card. None means the preset of the card.
    folder: Folder with NAME.pb.gz or NAME.pb, and with the measured steps in
      `keras_steps.json`.
  """
  called = step_costs.of_function(cluster or presets.preset(f'1x{CARD}'))
  told = folder / _STEPS
  measured = json.loads(told.read_text())['steps'] if told.exists() else {}
  for path in sorted((*folder.glob('*.pb'), *folder.glob('*.pb.gz'))):
    name = path.name.split('.pb')[0]
    own = measured.get(name, {})
    yield Step(name, step_s(read(path), called), own.get('in_a_row_s'),
               own.get('alone_s'))


def rows(folder: pathlib.Path = FOLDER) -> list[dict[str, Any]]:
  """Returns `steps` as rows for JSON.

  Args:
    folder: See `steps`.
  """
  return [dataclasses.asdict(step) for step in steps(folder=folder)]


def read(path: pathlib.Path) -> op_graph.OpGraph:
  """Reads a recorded graph.

  Args:
    path: File of a GraphDef. A name that ends in '.gz' means a zipped file.
  """
  if path.suffix != '.gz':
    return graph_def_io.read(sources.read(origin.Origin(str(path))))
  with tempfile.TemporaryDirectory() as folder:
    unzipped = pathlib.Path(folder) / path.stem
    unzipped.write_bytes(gzip.decompress(path.read_bytes()))
    return read(unzipped)


def step_s(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster) -> float:
  """Simulated seconds of a step on the first GPU."""
  allowed = constraints.allowed_devices(graph, cluster)
  places = one_device.on_each(cluster, allowed)[cluster.accelerators[0]]
  simulator = simulator_lib.Simulator(cluster, threads=1)
  return float(simulator.price_groups(graph, places[None]).seconds[0])
