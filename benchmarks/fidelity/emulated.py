"""Prices placements, and runs them on emulated GPUs, task by task."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import hashlib
import io
import itertools
import json
import pathlib
import re
from typing import Any, Callable, Sequence

import numpy as np

from benchmarks.fidelity import placements
from benchmarks.fidelity import report
from benchmarks.fidelity import study
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.cluster import architectures
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation.emulation import emulator as emulator_lib
from gdp_grappler.evaluation.ordering import control_edges as control_edges_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import tables
from gdp_grappler.workloads import registry as workload_registry
from gdp_grappler.workloads import stages

TASKS = tuple(f'{workload}{size}@{cluster}' for size in ('@tiny', '')
              for workload, cluster in (('rnnlm-2', '2xP100'), ('gnmt-4',
                                                                '4xP100'),
                                        ('transformer-xl-8', '8xP100'),
                                        ('inception-v3-b32',
                                         '2xP100'), ('amoebanet', '4xP100'),
                                        ('wavenet-2x18', '2xP100')))
# Emulated steps of a small graph. TensorFlow's threads make them differ.
_STEPS = 3
# Emulated steps of a large graph. One takes seconds, and steps differ only by a
# few tenths of a percent.
_STEPS_IF_LARGE = 1
# Ops above which a graph is large.
_LARGE_OPS = 2_000
_PLACERS = ('human_expert', 'm_etf', 'local_search')
_REAL = 'emulated'
_BY_PLACERS = 'placer '
_SCOPE = re.compile(r'[^/]+/[^/]+')
_MAX_SPLITS = 6  # Splits by layers of a graph, at most.
# Control edges are added even if they are predicted to gain little. A placement
# without a predicted gain gets no edges.
_ORDER = control_edges_lib.OrderConfig(min_gain=0.)
# Placements with control edges. More placements are drawn until this number is
# reached.
_LEAST_ORDERED = 40


@dataclasses.dataclass(frozen=True)
class Result:
  """Both halves of the study: first in, first out, and ordered.

  Attributes:
    fifo: Simulated and emulated steps in TensorFlow's own order.
    ordered: Steps of placements with control edges. `simulated_s` is with the
      edges, too.
  """

  fifo: list[study.Row]
  ordered: list[study.Row]


def run(task: str, folder: pathlib.Path, tell: Callable[[str], None],
        seed: int = 0) -> Result:
  """Studies one task. Results of former runs are read from the folder.

  Args:
    task: 'WORKLOAD@CLUSTER'.
    folder: Folder for the results.
    tell: Called with a line about each placement.
    seed: Seed of all random numbers.
  """
  workload, cluster_name = task.rsplit('@', 1)
  simulator = simulator_lib.Simulator(resolve.resolve(cluster_name))
  graph = graph_def_io.read(
      workload_registry.source(workload, architecture=architectures.of(
          simulator.cluster)))
  layers = stages.of(graph)
  modules = placements.modules_by_name(graph, layers, _SCOPE)
  suite = placements.suite(graph, simulator, layers, modules, seed, _MAX_SPLITS)
  expert = workload_registry.expert_devices(workload, graph, simulator.cluster,
                                            simulator.op_seconds(graph))
  suite.update(
      placements.by_placers(graph, simulator, _PLACERS, seed,
                            np.asarray(expert, np.int32)))
  result = Result([], [])
  progress.doing(f'running placements of {task}')
  steps = _STEPS if graph.num_ops <= _LARGE_OPS else _STEPS_IF_LARGE
  with _Runs(folder / f'{task}.json', simulator, steps) as runs:
    further = placements.further(graph, simulator.cluster, modules, suite, seed)
    for count, (label,
                placement) in enumerate(itertools.chain(suite.items(),
                                                        further)):
      ran = sum(not row.problem for row in result.ordered)
      if count >= len(suite) and ran >= _LEAST_ORDERED:
        break
      if not simulator.evaluate(graph, placement).valid:
        continue  # This study is about time, not about the limits of memory.
      order = control_edges_lib.control_edges(graph, placement, simulator,
                                              _ORDER)
      rows = [runs.row(task, label, graph, placement, order, False)]
      result.fifo.append(rows[0])
      if len(order.control_edges):
        rows.append(runs.row(task, label, graph, placement, order, True))
        result.ordered.append(rows[1])
      progress.reached(min(1., (count + 1) / len(suite)))
      tell(f'{task} {count + 1}/{len(suite)} {label}: ' + '; ordered: '.join(
          f'simulated {row.simulated_s * 1e3:.1f} ms, emulated '
          f'{row.measured_s * 1e3:.1f} ms' for row in rows))
  return result


class _Runs:
  """Emulated steps of a task's placements, kept in a file."""

  def __init__(self, path: pathlib.Path, simulator: simulator_lib.Simulator,
               steps: int):
    self._path, self._steps = path, steps
    self._known: dict[str, list[Any]] = (json.loads(path.read_text())
                                         if path.exists() else {})
    self._simulator = simulator
    self._edges = np.zeros((0, 2), np.int32)
    self._emulator = emulator_lib.Emulator(
        simulator.cluster, simulator.cost_model, steps=steps,
        control_edges=lambda *unused: self._edges)

  def __enter__(self) -> _Runs:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self._emulator.close()

  def row(self, task: str, label: str, graph: op_graph.OpGraph,
          placement: placement_lib.Placement, order: control_edges_lib.Order,
          ordered: bool) -> study.Row:
    """One placement, with its control edges or without."""
    simulated_s = order.with_edges_s if ordered else order.fifo_s
    self._edges = order.control_edges[:len(order.control_edges) * ordered]
    key = self._key(graph, placement)
    if key not in self._known:
      real = self._emulator.evaluate(
          graph,
          dataclasses.replace(placement,
                              priorities=order.priorities if ordered else None))
      problem = '' if real.valid else real.violations[0].message
      self._known[key] = [real.step_time_s, real.spread_s, problem]
      files.write_atomically(self._path, json.dumps(self._known))
    measured_s, spread_s, problem = self._known[key]
    return study.Row(task, label, simulated_s, order.ordered_s, measured_s,
                     spread_s, problem)

  def _key(self, graph: op_graph.OpGraph,
           placement: placement_lib.Placement) -> str:
    cluster = self._simulator.cluster
    parts = (graph.fingerprint.encode(), cluster.to_json().encode(),
             str(self._steps).encode(), placement.devices.tobytes(),
             self._edges.tobytes(),
             self._simulator.cost_model.op_seconds(graph, cluster).tobytes())
    return hashlib.sha256(b''.join(parts)).hexdigest()[:16]


def write(folder: pathlib.Path, result: Result) -> None:
  """Writes emulated.md, emulated.csv.gz and emulated.png."""
  text = io.StringIO()
  columns = [field.name for field in dataclasses.fields(study.Row)]
  writer = csv.DictWriter(text, ['order', *columns], lineterminator='\n')
  writer.writeheader()
  for order, rows in (('fifo', result.fifo), ('control edges', result.ordered)):
    for row in rows:
      writer.writerow({'order': order, **_rounded(row)})
  # Without a time stamp, so that equal rows make equal files.
  packed = gzip.compress(text.getvalue().encode(), mtime=0)
  files.write_atomically(folder / 'emulated.csv.gz', packed)
  report.draw(folder / 'emulated.png', result.fifo, _REAL)
  files.write_atomically(folder / 'emulated.md', _page(result))


def _rounded(row: study.Row) -> dict[str, Any]:
  """Rounds the numbers of a row to their significant digits."""
  return {
      name: float(f'{value:.6g}') if isinstance(value, float) else value
      for name, value in dataclasses.asdict(row).items()
  }


def agreement(result: Result, table: Callable[[list[tuple[str, ...]]],
                                              str]) -> str:
  """Two tables of agreement: for FIFO steps, and for steps with edges.

  Args:
    result: Rows of all tasks.
    table: Makes a table of cells.
  """
  return '\n'.join([
      'First in, first out:', '',
      table(report.agreement(result.fifo, _REAL)), '',
      'Ordered by control edges:', '',
      table(report.agreement(result.ordered, _REAL))
  ])


def _searched(rows: Sequence[study.Row]) -> str:
  lines = [
      '| task | placement | simulated | emulated | emulated / simulated |',
      '|---|---|---|---|---|'
  ]
  for row in rows:
    if row.label.startswith(_BY_PLACERS) and not row.problem:
      lines.append(f'| {row.graph} | {row.label} | {row.simulated_s * 1e3:.1f} '
                   f'ms | {row.measured_s * 1e3:.1f} ms | '
                   f'{row.measured_s / row.simulated_s:.2f} |')
  return '\n'.join(lines)


def _page(result: Result) -> str:
  return f"""# How true the simulator is of GPUs, as far as TensorFlow decides

How far is a simulated step from a step of TensorFlow's own runtime? `make
fidelity FIDELITY_ARGS=--emulated` **simulates** placements of the papers'
workloads, and runs them on **emulated GPUs**: a PluggableDevice without
hardware. Its kernels and copies take the seconds that the simulator charges,
and compute or move nothing. Its clock stands still while a thread of TensorFlow
works, so the speed of this machine does not count. A step is the median of
{_STEPS} runs, or of {_STEPS_IF_LARGE} for a graph of more than {_LARGE_OPS:,}
ops.

## What this proves, and what it does not

* **Real** are order, overlap and waiting, because the executor, the rendezvous,
  the streams, the event manager and the allocator are TensorFlow's own. For
  example, dispatch really runs ahead, and copies wait for real streams.
* **Not real** are seconds of kernels and links, and what a driver adds to a
  launch, a copy or a callback. Several hosts are not tested.

{agreement(result, tables.as_markdown)}

![simulated over emulated steps](emulated.png)

Every placement is in [emulated.csv.gz](emulated.csv.gz).

## What placers find

{_searched(result.fifo)}
"""
