"""A workload's training step as the pass gets it, cached on disk.

There is a version for CPUs, and one for each generation of GPUs
(`gpu_rewrites`).
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
_TIMEOUT_S = 1800.  # Seconds for building and rewriting one workload.
# GPUs, and fusions that depend on the model of the CPU, are off. So a workload
# is the same graph on every machine.
_ENVIRONMENT = {'CUDA_VISIBLE_DEVICES': '-1', 'TF_ENABLE_ONEDNN_OPTS': '0'}
_PACKAGE = 'gdp_grappler.workloads.'


def capture(workload: workload_lib.Workload, family: types.ModuleType,
            tell: Callable[[str], None],
            architecture: str = '') -> source_graph.SourceGraph:
  """Builds a workload in its own process, or reads it from the cache.

  Args:
    workload: A registered workload, because the process finds it by name.
    family: Module that defines the workload.
    tell: Function that is called with a line if the graph is built.
    architecture: Architecture of the cards that Grappler rewrites the graph for
      (see `architectures.of`); '' for CPUs.

  Raises:
    InvalidGraphError: the workload cannot be built.
  """
  cards = gpu_rewrites.generation(architecture)
  path = cache_path(workload, family, cards)
  known = cached(path, tell)
  if known is not None and known.name == workload.name:
    return known
  tell(f'Building {workload.name}, to keep it in {path.parent}.')
  progress.doing(f'building {workload.name}')
  data = _build(workload.name, cards)
  cache.keep(path, _digest(data) + data, tell)
  return _parsed(data)


def cache_path(workload: workload_lib.Workload, family: types.ModuleType,
               cards: str = '') -> pathlib.Path:
  """Returns the path of a workload in the cache, which depends on its code.

  Args:
    workload: A registered workload.
    family: Module that defines the workload.
    cards: Generation of the cards; see `gpu_rewrites.generation`.
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
  """Returns the family and the modules of this package that it uses."""
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
  """Returns a cached graph; None if there is none or it cannot be used."""
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
  """Returns the first line of a cached graph, by which damage is found."""
  return hashlib.sha256(data).hexdigest().encode() + b'\n'


def _build(name: str, cards: str) -> bytes:
  """Returns a serialized captured graph, made in its own process."""
  try:
    data = calls.call(_WORKER, name, cards, timeout_s=_TIMEOUT_S,
                      environment=_ENVIRONMENT)
  except calls.CallError as error:
    raise errors.InvalidGraphError(
        f'Building {name} failed: {error}. Building takes up to 6 GB of '
        'memory. Try again when that much is free and the machine is less '
        'busy.') from error
  graph_files.check_nodes(
      meta_graph_pb2.MetaGraphDef.FromString(data).graph_def, name)
  return data
