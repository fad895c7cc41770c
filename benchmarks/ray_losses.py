"""Tests that results stay the same if a node of a Ray cluster is killed.

Run it from the repository with `python -m benchmarks.ray_losses`. A Ray cluster
of three nodes on this machine prices placements in jobs. One of its nodes is
killed at a random moment, and a new node joins for the next round. Prices must
equal those of local processes to the last bit. The exit code is 1 if a price
differs.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import threading
from typing import Any, Iterator, Sequence

import numpy as np

from benchmarks import ray_jobs
from benchmarks import tables
from gdp_grappler import extras
from gdp_grappler import progress
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import local_team
from gdp_grappler.processes import ray_machines

_TITLE = 'One of three nodes killed'


def _killed(arguments: argparse.Namespace) -> tables.Table:
  extras.require('ray_losses', 'ray')
  loaded = ray_jobs.loaded(arguments.graph, arguments.cluster)
  setup = loaded.graph, arguments.cluster
  count = max(1, round(.2 / ray_jobs.placement_s(setup)))
  jobs = ray_jobs.pricing(40, count)
  with local_team.Here(2).team(ray_jobs.PRICE, setup) as team:
    seconds, expected = ray_jobs.timed(team, jobs)
  rows = []
  rng = random.Random(0)
  with _three_nodes() as (cluster, nodes):
    with ray_machines.RayMachines(cluster.address) as machines:
      with machines.team(ray_jobs.PRICE, setup) as team:
        team.results(jobs[:4], shown=False)
        for number in range(arguments.kills):
          progress.doing(f'kill {number + 1} of {arguments.kills}')
          rows.append(
              _run_with_kill(team, jobs, expected, cluster, nodes,
                             rng.uniform(0, seconds)))
  return tables.Table(
      f'{len(jobs)} jobs of {count} placements each on three Ray nodes, one of '
      'them killed while they run',
      ('killed after', 'jobs that had ended', 'results'),
      [(f'{row["killed_after_s"]:.2f} s', str(
          row['ended_before']), 'the same' if row['same'] else 'differ')
       for row in rows], rows, not all(row['same'] for row in rows))


def _run_with_kill(team: jobs_lib.Team[Any], jobs: Sequence[jobs_lib.Job],
                   expected: Sequence[np.ndarray], cluster: Any,
                   nodes: list[Any], after_s: float) -> dict[str, Any]:
  """Runs all jobs. Meanwhile kills a node, and starts another one."""
  found: list[Any] = [None] * len(jobs)
  ended_before = [-1]

  def kill() -> None:
    ended_before[0] = sum(result is not None for result in found)
    cluster.remove_node(nodes.pop(0), allow_graceful=False)

  timer = threading.Timer(after_s, kill)
  timer.start()
  try:
    for ended in team.run(jobs):
      found[ended.index] = ended.result
  finally:
    timer.join()
    nodes.append(cluster.add_node(num_cpus=1))
  return {
      'killed_after_s': after_s, 'ended_before': ended_before[0],
      'same': all(map(np.array_equal, found, expected))
  }


@contextlib.contextmanager
def _three_nodes() -> Iterator[tuple[Any, list[Any]]]:
  """Starts a cluster: a head, which also runs jobs, and two more nodes."""
  from ray import cluster_utils
  cluster = cluster_utils.Cluster(initialize_head=True,
                                  head_node_args={'num_cpus': 1})
  try:
    yield cluster, [cluster.add_node(num_cpus=1) for _ in range(2)]
  finally:
    cluster.shutdown()


main = tables.program('ray_losses', __doc__, _TITLE, _killed,
                      tables.option('--graph', default='rnnlm-2@tiny'),
                      tables.option('--cluster', default='2xP100'),
                      tables.option('--kills', type=int, default=10))

if __name__ == '__main__':
  sys.exit(main())
