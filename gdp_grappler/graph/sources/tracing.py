"""Runs `tracing_worker` for graphs that only exist once TensorFlow traced them.

A process of its own, so that the caller's TensorFlow keeps its devices, its
memory and its Keras (the learning side runs legacy Keras, users run Keras 3).
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import Callable

from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import graph_files

_TIMEOUT_S = 1200
# What would make the worker's TensorFlow another one than a user's.
_FOREIGN = ('TF_USE_LEGACY_KERAS', 'GDP_CAPTURE_DIR', 'GDP_PLACEMENT')


def trace(kind: str, path: str, name: str, batch_size: int,
          signature: str | None,
          tell: Callable[[str], None]) -> source_graph.SourceGraph:
  """Has a worker trace something and reads what it captured.

  Args:
    kind: 'keras', 'function', 'application' or 'saved_model'.
    path: What to trace.
    name: What to call the graph.
    batch_size: For unknown first dimensions.
    signature: Of a SavedModel, or None.
    tell: Hears one line for everything that was assumed.

  Raises:
    InvalidGraphError: it cannot be loaded or traced.
  """
  with tempfile.TemporaryDirectory(prefix='gdp_trace_') as directory:
    request = dict(kind=kind, path=path, name=name, batch_size=batch_size,
                   signature=signature)
    answer = _run(request, pathlib.Path(directory))
    for note in answer['notes']:
      tell(f'{path}: {note}')
    if answer['error']:
      raise errors.InvalidGraphError(answer['error'])
    data = (pathlib.Path(directory) / 'graph.pb').read_bytes()
  result = source_graph.from_meta_graph(
      meta_graph_pb2.MetaGraphDef.FromString(data))
  graph_files.check_nodes(result.graph_def, path)
  return result


def _run(request, directory) -> dict:
  (directory / 'request.json').write_text(json.dumps(request))
  command = [
      sys.executable, '-m', 'gdp_grappler.graph.sources.tracing_worker',
      str(directory)
  ]
  with open(directory / 'stderr', 'w+b') as stderr:
    try:
      code = subprocess.run(command, env=_environment(),
                            stdin=subprocess.DEVNULL, stdout=stderr,
                            stderr=stderr, timeout=_TIMEOUT_S,
                            check=False).returncode
    except subprocess.TimeoutExpired as error:
      raise errors.InvalidGraphError(
          f'Tracing {request["path"]} took more than {_TIMEOUT_S} s. Capture '
          'its graph with GDP_CAPTURE_DIR in your own program and give that.'
      ) from error
  answer = directory / 'answer.json'
  if not answer.exists():
    raise errors.InvalidGraphError(
        f'Tracing {request["path"]} ended without a result '
        f'({ending(code)}): {last_line(directory / "stderr")}. Capture its '
        'graph with GDP_CAPTURE_DIR in your own program and give that.')
  return json.loads(answer.read_text())


def _environment() -> dict[str, str]:
  """Without the plugin, with the caller's import path and Keras 3."""
  result = {k: v for k, v in os.environ.items() if k not in _FOREIGN}
  result.update(
      GDP_DISABLE='1', TF_CPP_MIN_LOG_LEVEL='3', KERAS_BACKEND='tensorflow',
      TF_FORCE_GPU_ALLOW_GROWTH='true',
      PYTHONPATH=os.pathsep.join([os.getcwd()] + [p for p in sys.path if p]))
  return result


def ending(code: int) -> str:
  """How a process ended, for an error message."""
  if code >= 0:
    return f'exit code {code}'
  name = signal.Signals(-code).name
  return f'{name}, out of memory?' if name == 'SIGKILL' else name


def last_line(path: pathlib.Path) -> str:
  """The last thing a process said, for an error message."""
  lines = path.read_text(errors='replace').strip().splitlines()
  return lines[-1][:200] if lines else 'it printed nothing'
