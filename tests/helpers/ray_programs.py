"""Programs that run jobs on Ray in interpreters of their own."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import sys
import time

import pytest

from gdp_grappler.processes import jobs
from gdp_grappler.processes import local_team
from gdp_grappler.processes import ray_machines

_MISSED_S = 90.
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec('ray') is None,
    reason="needs ray: pip install 'gdp-grappler[ray]'")
_HERE = 'helpers.job_functions'
_LISTENING = '0A'
_LOOPBACK = ('0100007F', '0' * 24 + '01000000', '0' * 16 + 'FFFF0000'
             '0100007F')


def without_ray() -> None:
  """Runs `gdp_bench` as if Ray were not installed."""
  sys.modules['ray'] = None  # type: ignore[assignment]
  from placer_model.bin import gdp_bench
  gdp_bench.run()


def local() -> None:
  """Prints observations of a Ray cluster on this machine."""
  with ray_machines.RayMachines('local', 2) as machines:
    found: dict = {'width': machines.width}
    with machines.team(f'{_HERE}:doubling', 'setup') as team:
      found['doubled'] = team.results(_calls(5))
    with machines.team(f'{_HERE}:misbehaving', None) as team:
      names = ['well', 'raising', 'dying', 'killed', 'well']
      ended = list(team.run([jobs.Call(name) for name in names]))
      found['said'] = {e.index: [e.result, e.problem] for e in ended}
    with machines.team(f'{_HERE}:seen', None) as team:
      call = jobs.Call('seen', ('OMP_NUM_THREADS', 'GDP_POLICY'))
      [(found['variables'], niceness, folder)] = team.results([call])
    found['gives_way_by'] = niceness - os.nice(0)
    found['folder'] = folder
    found['listening'] = _listening(_descendants(os.getpid()))
  print(json.dumps(found))


def elsewhere() -> None:
  """Prints results of jobs that were started from another folder."""
  with ray_machines.RayMachines('local', 1) as machines:
    with machines.team(f'{_HERE}:doubling', 'setup') as team:
      print(json.dumps(team.results(_calls(3))))


def three_nodes() -> None:
  """Prints whether results are equal after one of three nodes was killed."""
  from ray import cluster_utils
  calls = _calls(24)
  with local_team.Here(2).team(f'{_HERE}:slow', 0.) as team:
    expected = [array.tobytes() for array in team.results(calls)]
  cluster = cluster_utils.Cluster(initialize_head=True,
                                  head_node_args={'num_cpus': 0})
  try:
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    found, hosts = [b''] * len(calls), []
    with ray_machines.RayMachines(cluster.address) as machines:
      hosts.append(machines.width)
      with machines.team(f'{_HERE}:slow', .3) as team:
        for count, ended in enumerate(team.run(calls)):
          assert not ended.problem, ended.problem
          found[ended.index] = ended.result.tobytes()
          if count == 5:
            cluster.remove_node(nodes[0], allow_graceful=False)
      # Ray may need some time to notice the loss.
      deadline = time.monotonic() + _MISSED_S
      while machines.width > 1 and time.monotonic() < deadline:
        time.sleep(.5)
      hosts.append(machines.width)
  finally:
    cluster.shutdown()
  print(json.dumps({'equal': found == expected, 'hosts': hosts}))


def _calls(count: int) -> list[jobs.Call]:
  return [jobs.Call(f'job {number}', (number,)) for number in range(count)]


def _descendants(process: int) -> set[int]:
  from helpers import processes
  found = {process}
  for child in processes.children(process):
    found |= _descendants(child)
  return found


def _listening(owners: set[int]) -> list[bool]:
  """Returns for each listening socket whether it is on the loopback."""
  inodes = set()
  for owner in owners:
    # The process may have ended, or may have closed a file.
    with contextlib.suppress(FileNotFoundError):
      for handle in os.listdir(f'/proc/{owner}/fd'):
        with contextlib.suppress(FileNotFoundError):
          target = os.readlink(f'/proc/{owner}/fd/{handle}')
          inodes |= {target[8:-1]} if target.startswith('socket:[') else set()
  found = []
  for table in ('tcp', 'tcp6'):
    for line in pathlib.Path(f'/proc/net/{table}').read_text().splitlines()[1:]:
      fields = line.split()
      if fields[3] == _LISTENING and fields[9] in inodes:
        found.append(fields[1].partition(':')[0] in _LOOPBACK)
  return found
