"""Prints how long the simulator takes per placement.

Run it from the repository with `python -m benchmarks.simulator_speed`. Graphs
are generated, the cluster is 4xP100. Columns: milliseconds in one thread, best
of several, with all ops on one GPU, in contiguous blocks, and at random (nearly
every tensor crosses a link: the worst case); nanoseconds per op of the last;
and how many times faster 16 placements are with a thread per core.
"""

import argparse
import os
import time

import numpy as np
from rich import console
from rich import table

from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import simulator
from tests.helpers import graphs

_CLUSTER = presets.preset('4xP100')
_REPEATS = 9


def _placements(graph, count=16) -> dict[str, np.ndarray]:
  """Label -> int32 [count, N]."""
  rng = np.random.default_rng(0)
  blocks = 1 + np.arange(graph.num_groups) * 4 // graph.num_groups
  by_group = {
      'one GPU': np.ones((count, graph.num_groups), np.int32),
      'blocks': np.tile(blocks, (count, 1)),
      'random': rng.integers(0, 5, (count, graph.num_groups)),
  }
  return {label: groups[:, graph.groups].astype(np.int32)
          for label, groups in by_group.items()}


def _milliseconds(graph, devices, threads=1) -> float:
  """Of one call, once everything is prepared."""
  priced = simulator.Simulator(_CLUSTER, threads=threads)
  priced.step_times(graph, devices)
  times = []
  for _ in range(_REPEATS):
    start = time.perf_counter()
    priced.step_times(graph, devices)
    times.append(time.perf_counter() - start)
  return min(times) * 1e3


def _row(num_ops) -> list[str]:
  graph = graphs.random_graph(0, num_ops)
  placements = _placements(graph)
  times = [_milliseconds(graph, p[:1]) for p in placements.values()]
  many = placements['random']
  gain = (_milliseconds(graph, many)
          / _milliseconds(graph, many, os.cpu_count()))
  return [f'{num_ops:,}', *(f'{t:.2f}' for t in times),
          f'{times[-1] / num_ops * 1e6:.0f}', f'{gain:.2f}x']


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--sizes', type=int, nargs='+',
                      default=[1_000, 10_000, 83_000, 300_000])
  result = table.Table(
      'ops', 'one GPU (ms)', 'blocks (ms)', 'random (ms)', 'ns per op',
      f'{os.cpu_count()} cores', title='Simulator, per placement')
  for num_ops in parser.parse_args().sizes:
    result.add_row(*_row(num_ops))
  console.Console().print(result)


if __name__ == '__main__':
  main()
