"""Compares simulated steps with steps that were measured on a real GPU.

Run it from the repository with `python -m benchmarks.recorded_gpu`; `--json`
prints a list of rows instead of a table. There are two kinds:

* runs (`--runs=FOLDER`): TensorFlow's own GPU runtime on logical GPUs of one
  card. Each op is a kernel that spins for the seconds that the graph
  prescribes, and each copy is a kernel that spins for its bytes at 12 GB/s. So
  streams, events, threads and driver are real, but seconds are prescribed.
  `measured.json` has the steps. A file for each task has the graph and the
  placements;
* graphs (`--graphs=FOLDER`): training steps of Keras models on one card, as the
  pass received them; see `benchmarks.recorded_keras`.

The times of the host and of the driver are those of all presets. They were
measured with short chains of ops on that card, not with these runs. Only two
figures, from the same chains, are special to the runs: a copy that is a kernel
starts sooner than a copy of memory, and ops that wait for it are dispatched
later.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import pathlib
import statistics
import sys
from typing import Any, Sequence

import numpy as np

from benchmarks import recorded_keras
from benchmarks import tables
from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import device_figures
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import fixed_costs
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph

RUNS = pathlib.Path(__file__).parents[1] / 'tests' / 'testdata' / 'gpu_runs'
_MEASURED = 'measured.json'
# Latency of a copy that is a kernel. With it, a transfer of 64 bytes between
# idle GPUs takes 32 us, as measured.
_COPY_LATENCY_S = 2e-6
# Seconds that TensorFlow's polling for events adds to a transfer. With them, a
# transfer after a kernel of 20 us ends 99 us after the kernel, as measured.
_POLL_S = 79e-6
_WIRE_BYTES_PER_S = 12e9  # Rate of a copy between logical GPUs.
# An op with fewer seconds launched no kernel.
_LEAST_KERNEL_S = 1e-6
# Seconds of a kernel that is shorter than the gap behind it.
_LEAST_SPIN_S = 1e-9
# Pattern of the names of placements that a search has improved.
_SEARCHED = ('gdp', 'local_search')


@dataclasses.dataclass(frozen=True)
class Run:
  """One placement of one graph, and the steps that were timed.

  Attributes:
    task: 'transformer-xl-2@2xP100'.
    name: Name of the placement, such as 'm_etf+edges'.
    path: File with the graph and the placement.
    duration_scale: Seconds of ops in the run over those in the file.
    steps_s: Measured steps, in seconds.
  """

  task: str
  name: str
  path: pathlib.Path
  duration_scale: float
  steps_s: tuple[float, ...]

  @property
  def measured_s(self) -> float:
    """Median of the seconds of a step."""
    return statistics.median(self.steps_s)


def load_runs(folder: pathlib.Path) -> list[Run]:
  """Reads all runs of a folder.

  Raises:
    GdpError: `measured.json` is missing or has another format.
  """
  path = folder / _MEASURED
  try:
    return [
        Run(row['task'],
            row['run'], folder / row['file'], row['duration_scale'],
            tuple(row['steps_s'])) for row in json.loads(path.read_text())
    ]
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise errors.GdpError(
        f'{path} does not tell of runs ({errors.one_line(error)}). Name a '
        'folder with recorded runs by --runs.') from error


def card(num_gpus: int) -> cluster_lib.Cluster:
  """Logical GPUs of one card whose kernels do not disturb each other.

  Args:
    num_gpus: Number of logical GPUs.
  """
  cluster = presets.preset(f'{num_gpus}xH100')
  devices = tuple(
      dataclasses.replace(device, context='card', poll_s=_POLL_S) if device.
      asynchronous else device for device in cluster.devices)
  gpus = [device.name for device in devices if device.asynchronous]
  links = {(link.source, link.target): link for link in cluster.links}
  for source, target in itertools.permutations(gpus, 2):
    links[source, target] = cluster_lib.Link(source, target, _COPY_LATENCY_S,
                                             _WIRE_BYTES_PER_S,
                                             (f'{source} > {target}',))
  return dataclasses.replace(cluster, name='card', devices=devices,
                             links=tuple(links.values()))


class RecordedGraph:
  """The graph of a file, and prices of its placements.

  Attributes:
    cluster: Cluster with the logical GPUs that the placements name.
  """

  def __init__(self, path: pathlib.Path, duration_scale: float,
               num_gpus: int) -> None:
    """Reads the file.

    Args:
      path: An .npz file.
      duration_scale: Factor for the seconds of ops in the file.
      num_gpus: Number of logical GPUs of the recorded run.
    """
    self._arrays = np.load(path)
    self.cluster = card(num_gpus)
    self._graph = _graph(path.stem, self._arrays)
    self._costs = fixed_costs.FixedCostModel(
        np.repeat(
            _spins_s(self._arrays['seconds'] * duration_scale)[:, None],
            self.cluster.num_devices, 1))

  def simulated_s(self, name: str) -> float:
    """Returns the simulated step of a placement."""
    graph = self._graph
    edges = f'control_edges_{name}'
    if edges in self._arrays.files and len(self._arrays[edges]):
      graph = edge_pricer.with_edges(graph, self._arrays[edges])
    gpus = np.array(self.cluster.accelerators)
    devices = gpus[self._arrays[f'devices_{name}'].astype(int)]
    prices = simulator_lib.Simulator(self.cluster, self._costs).price(
        graph, devices[None].astype(np.int32))
    return float(prices.seconds[0])


def price(runs: Sequence[Run]) -> list[dict[str, Any]]:
  """Prices runs; each row has task, run, simulated_s and measured_s.

  Args:
    runs: Runs, in any order.
  """
  graphs: dict[tuple[pathlib.Path, float], RecordedGraph] = {}
  rows = []
  for run in runs:
    key = run.path, run.duration_scale
    if key not in graphs:
      graphs[key] = RecordedGraph(run.path, run.duration_scale,
                                  _num_gpus(run.task))
    rows.append({
        'task': run.task, 'run': run.name, 'duration_scale': run.duration_scale,
        'simulated_s': graphs[key].simulated_s(run.name),
        'measured_s': run.measured_s
    })
  return rows


def _num_gpus(task: str) -> int:
  """Returns the number of GPUs, 4 for 'transformer-xl-4@4xP100'."""
  return int(task.rsplit('@', 1)[1].split('x')[0])


def _spins_s(seconds: np.ndarray) -> np.ndarray:
  """Seconds of kernels without the gap behind each; 0 for other ops."""
  gap_s = device_figures.CARD_LAUNCH['gap_s']
  return np.where(seconds < _LEAST_KERNEL_S, 0,
                  np.maximum(seconds - gap_s, _LEAST_SPIN_S))


def _graph(name: str, arrays: Any) -> op_graph.OpGraph:
  count = len(arrays['seconds'])
  return op_graph.OpGraph(
      name=name, names=tuple(map(str, range(count))), op_types=tuple(
          np.where(arrays['aliases'].astype(bool), 'Identity',
                   'Kernel').tolist()), edges=arrays['edges'],
      edge_tensors=arrays['edge_tensors'], tensor_ops=arrays['tensor_ops'],
      tensor_bytes=arrays['tensor_bytes'], flops=np.zeros(count),
      io_bytes=np.zeros(count), param_bytes=np.zeros(count),
      groups=np.arange(count), allowed_types=np.ones((count, 2), bool),
      pins=('',) * count, user_pins=np.zeros(count,
                                             bool), devices=('',) * count)


def _table(rows: Sequence[dict[str, Any]]) -> tables.Table:
  """Returns the table of errors: by task, and for searched placements."""
  cells = []
  for task in dict.fromkeys(row['task'] for row in rows):
    own = [row for row in rows if row['task'] == task]
    off = np.array([row['simulated_s'] / row['measured_s'] - 1 for row in own])
    searched = off[[row['run'].startswith(_SEARCHED) for row in own]]
    cells.append(
        (task, str(len(own)), f'{100 * np.abs(off).mean():.1f} %',
         f'{100 * off.mean():+.1f} %',
         f'{100 * np.abs(searched).mean():.1f} %' if len(searched) else '-',
         f'{100 * min(searched):+.1f} %' if len(searched) else '-'))
  return tables.Table(
      'Simulated steps beside steps of a real GPU runtime',
      ('task', 'runs', 'mean error', 'bias', 'of searched', 'lowest searched'),
      cells, rows)


def _find(arguments: argparse.Namespace) -> tables.Table:
  """Returns the rows of runs and graphs, and the table of their errors."""
  runs = _table(price(load_runs(arguments.runs)))
  graphs = recorded_keras.rows(arguments.graphs)
  cells = []
  for row in graphs:
    measured_s = row['measured_s']
    off = '-' if measured_s is None else (
        f'{100 * (row["predicted_s"] / measured_s - 1):+.1f} %')
    cells.append((row['graph'], tables.milliseconds(row['predicted_s']),
                  tables.milliseconds(measured_s), off, '', ''))
  head = ('Keras step', 'predicted', 'measured', 'error', '', '')
  return dataclasses.replace(runs, cells=[*runs.cells, head, *cells],
                             rows=[*runs.rows, *graphs])


main = tables.program(
    'recorded_gpu', __doc__, 'Recorded GPU', _find,
    tables.option('--runs', type=pathlib.Path, default=RUNS),
    tables.option('--graphs', type=pathlib.Path, default=recorded_keras.FOLDER))

if __name__ == '__main__':
  sys.exit(main())
