"""The training step of a workload as the pass receives it, cached on disk.

As it is for CPUs, and as it is for each generation of GPUs (`gpu_rewrites`).
"""

from __future__ import annotations

import hashlib
import inspect
import pathlib
import types
from typing import Callable

from google.protobuf import message
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.framework import versions

from gdp_grappler import cache
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import gpu_rewrites
from gdp_grappler.graph.sources import graph_files
from gdp_grappler.processes import calls
from gdp_grappler.workloads import workload as workload_lib

_WORKER = 'gdp_grappler.workloads.capture_worker:build'
_TIMEOUT_S = 1800.
# No GPU, and no fusion that depends on the CPU's kind, so that a workload is
# the same graph on every machine.
_ENVIRONMENT = {'CUDA_VISIBLE_DEVICES': '-1', 'TF_ENABLE_ONEDNN_OPTS': '0'}
_PACKAGE = 'gdp_grappler.workloads.'


def capture(workload: workload_lib.Workload, family: types.ModuleType,
            tell: Callable[[str], None],
            architecture: str = '') -> source_graph.SourceGraph:
  """Builds a workload in a process of its own, or finds it in the cache.

  Args:
    workload: A registered one: the process finds it by name.
    family: The module that defines it.
    tell: Hears one line if the graph is built.
    architecture: Of the cards that Grappler rewrites it for, as of
      `architectures.of`; '' for CPUs.

  Raises:
    InvalidGraphError: it cannot be built.
  """
  cards = gpu_rewrites.generation(architecture)
  path = cache_path(workload, family, cards)
  known = cached(path, tell)
  if known is not None and known.name == workload.name:
    return known
  tell(f'Building {workload.name}, once; it is kept in {path.parent}.')
  progress.doing(f'building {workload.name}')
  data = _build(workload.name, cards)
  cache.keep(path, _digest(data) + data, tell)
  return _parsed(data)


def cache_path(workload: workload_lib.Workload, family: types.ModuleType,
               cards: str = '') -> pathlib.Path:
  """Where a workload is kept: another place for every version of its code.

  Args:
    workload: A registered one.
    family: The module that defines it.
    cards: The generation that it is for, as of `gpu_rewrites.generation`.
  """
  digest = hashlib.sha256(versions.VERSION.encode())
  here = pathlib.Path(__file__)
  sources = [
      pathlib.Path(inspect.getfile(module)) for module in _modules(family)
  ]
  if cards:
    sources.append(pathlib.Path(inspect.getfile(gpu_rewrites)))
  for source in (here, here.with_name('capture_worker.py'), *sources):
    digest.update(source.read_bytes())
  key = digest.hexdigest()[:16]
  kind = f'_gpu{cards}' if cards else ''
  return cache.path('workloads',
                    f'{workload.name.replace("@", "_")}{kind}_{key}.pb')


def _modules(family: types.ModuleType) -> list[types.ModuleType]:
  """The family and the modules of this package that it is made with."""
  found = {family.__name__: family}
  waiting = [family]
  while waiting:
    for value in vars(waiting.pop()).values():
      name = getattr(value, '__name__', '')
      if (isinstance(value, types.ModuleType) and name.startswith(_PACKAGE) and
          name not in found):
        found[name] = value
        waiting.append(value)
  return [found[name] for name in sorted(found)]


def cached(path: pathlib.Path,
           tell: Callable[[str], None]) -> source_graph.SourceGraph | None:
  """A graph that was kept; None if there is none or it cannot be used."""
  data = cache.kept(path, tell)
  size = len(_digest(b''))
  if data is None or data[:size] != _digest(data[size:]):
    return None
  try:
    result = _parsed(data[size:])
    graph_files.check_nodes(result.graph_def, str(path))
    graph_files.check_ends(result, str(path))
    return result
  except (message.DecodeError, errors.InvalidGraphError):
    return None


def _parsed(data: bytes) -> source_graph.SourceGraph:
  return source_graph.from_meta_graph(
      meta_graph_pb2.MetaGraphDef.FromString(data))


def _digest(data: bytes) -> bytes:
  """What stands before a graph in the cache, so that damage shows."""
  return hashlib.sha256(data).hexdigest().encode() + b'\n'


def _build(name: str, cards: str) -> bytes:
  """A serialized captured graph, made in a process of its own."""
  try:
    data = calls.call(_WORKER, name, cards, timeout_s=_TIMEOUT_S,
                      environment=_ENVIRONMENT)
  except calls.CallError as error:
    raise errors.InvalidGraphError(
        f'Building {name} failed: {error}. Building takes up to 6 GB of '
        'memory: see that there is as much, and try again when the machine is '
        'less busy.') from error
  graph_files.check_nodes(
      meta_graph_pb2.MetaGraphDef.FromString(data).graph_def, name)
  return data
