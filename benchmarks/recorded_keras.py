"""Predicted beside measured steps of Keras models that one H100 has run.

  python -m benchmarks.recorded_keras [--json]

The graphs are those that the pass received there, the steps those that were
measured (`tests/testdata/h100`): the train function called over and over. What
`op_families` has of [H100] was fitted to three of the graphs; the other two
were kept back, but for one choice: ResNet50's step is as long with slower
elementwise kernels as with slower convolutions, and of the pairs that suit it
one was taken that suits the MLP.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import pathlib
import tempfile
from typing import Any, Iterator

from absl import app
from absl import flags

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

_JSON = flags.DEFINE_bool('json', False, 'Print JSON.')

FOLDER = pathlib.Path(__file__).parents[1] / 'tests' / 'testdata' / 'h100'
FITTED = ('cnn', 'lstm', 'resnet50')
KEPT_BACK = ('mlp', 'transformer')
CARD = 'H100'


@dataclasses.dataclass(frozen=True)
class Step:
  """A graph and what its step takes.

  Attributes:
    graph: Name of the model.
    predicted_s: By the simulator, with what a call takes.
    measured_s: Mean of steps in a row.
    alone_s: Of a step whose loss is read before the next one begins.
  """

  graph: str
  predicted_s: float
  measured_s: float
  alone_s: float


def steps(cluster: cluster_lib.Cluster | None = None) -> Iterator[Step]:
  """All that was recorded, by name.

  Args:
    cluster: One CPU and one such card; by default the preset.
  """
  cluster = cluster or presets.preset(f'1x{CARD}')
  text = (FOLDER / 'keras_steps.json').read_text()
  for name, measured in sorted(json.loads(text)['steps'].items()):
    yield Step(name, predicted_s(read(name), cluster), measured['in_a_row_s'],
               measured['alone_s'])


def rows() -> list[dict[str, Any]]:
  """`steps` as JSON has them."""
  return [dataclasses.asdict(step) for step in steps()]


def read(name: str) -> op_graph.OpGraph:
  """A recorded graph."""
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / f'{name}.pb'
    path.write_bytes(gzip.decompress((FOLDER / f'{name}.pb.gz').read_bytes()))
    return graph_def_io.read(sources.read(origin.Origin(str(path))))


def predicted_s(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster) -> float:
  """Of a step on the first GPU, called as a function."""
  called = step_costs.of_function(cluster)
  allowed = constraints.allowed_devices(graph, called)
  places = one_device.on_each(called, allowed)[called.accelerators[0]]
  simulator = simulator_lib.Simulator(called, threads=1)
  return float(simulator.price_groups(graph, places[None]).seconds[0])


def main(argv: list[str]) -> None:
  """Prints the steps."""
  if len(argv) > 1:
    raise app.UsageError(f'Nothing is known of "{argv[1]}".')
  if _JSON.value:
    print(json.dumps(rows()))
    return
  print('graph         predicted   measured      alone    error')
  for step in steps():
    fitted = '' if step.graph in FITTED else '  (kept back)'
    told = step.predicted_s, step.measured_s, step.alone_s
    times = '  '.join(f'{seconds * 1e3:6.1f} ms' for seconds in told)
    print(f'{step.graph:12s}  {times}  '
          f'{100 * (step.predicted_s / step.measured_s - 1):+5.0f} %{fitted}')


if __name__ == '__main__':
  app.run(main)
