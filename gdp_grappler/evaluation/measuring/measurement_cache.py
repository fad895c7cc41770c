"""A cache of measured steps that may outlive the process.

There is one file per graph, cluster and measuring configuration. It has one
line of JSON per placement. A single write appends a line, so a process that is
killed loses at most its current line, and several processes may share the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import pathlib
import re
import threading
from typing import Any, Mapping

from absl import logging

from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator


class MeasurementCache:
  """Evaluations by the key of their placement."""

  def __init__(self, folder: str | os.PathLike[str], name: str,
               context: bytes) -> None:
    """Reads the results of earlier runs.

    Args:
      folder: Folder of the files, made if it does not exist; '' for memory
        only.
      name: Name of the graph, which becomes part of the file's name.
      context: All data besides the placement on which a result depends.

    Raises:
      MeasurementError: the folder cannot be used.
    """
    self._known: dict[bytes, evaluator.Evaluation] = {}
    self._lock = threading.Lock()
    self._path: pathlib.Path | None = None
    if folder:
      stem = re.sub(r'[^\w.-]+', '_', name).strip('.')[:80]
      digest = hashlib.sha256(context).hexdigest()[:16]
      self._path = pathlib.Path(folder) / f'{stem}-{digest}.jsonl'
      self._read(self._path)

  def __contains__(self, key: bytes) -> bool:
    return key in self._known

  def __getitem__(self, key: bytes) -> evaluator.Evaluation:
    return self._known[key]

  def add(self, key: bytes, evaluation: evaluator.Evaluation,
          lasting: bool) -> None:
    """Adds a result, also to the file if it is `lasting`.

    Raises:
      MeasurementError: the file cannot be written.
    """
    with self._lock:
      self._known[key] = evaluation
      if self._path and lasting:
        self._append(self._path,
                     json.dumps(_to_json(key, evaluation)).encode() + b'\n')

  def _read(self, path: pathlib.Path) -> None:
    try:
      lines = files.read(path).split(b'\n')
    except FileNotFoundError:
      return
    except OSError as error:
      raise _error('read', path, error) from error
    damaged = 0
    for line in filter(None, lines):
      try:
        key, evaluation = _from_json(files.parse_json(line))
        self._known[key] = evaluation
      except (ValueError, KeyError, TypeError):
        damaged += 1
    if lines[-1]:  # The last line is cut off; new lines must not continue it.
      self._append(path, b'\n')
    if damaged:
      logging.warning(
          '%s: %d damaged measurement%s ignored; measured again '
          'where needed.', path, damaged, 's'[:damaged - 1])

  def _append(self, path: pathlib.Path, data: bytes) -> None:
    try:
      path.parent.mkdir(parents=True, exist_ok=True)
      descriptor = os.open(
          path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
      try:
        os.write(descriptor, data)
      finally:
        os.close(descriptor)
    except OSError as error:
      raise _error('write', path, error) from error


def _error(verb: str, path: pathlib.Path,
           error: OSError) -> errors.MeasurementError:
  return errors.MeasurementError(
      f'Cannot {verb} measurements in {path}: {error.strerror}. Make room or '
      'name another place.')


def _to_json(key: bytes, evaluation: evaluator.Evaluation) -> dict[str, Any]:
  finite = math.isfinite(evaluation.step_time_s)
  return digests.sealed(
      dict(key=key.hex(),
           step_time_s=evaluation.step_time_s if finite else None,
           spread_s=evaluation.spread_s, peak_bytes=evaluation.peak_bytes,
           violations=[[v.kind, v.message] for v in evaluation.violations]))


def _from_json(fields: Mapping[str, Any]) -> tuple[bytes, evaluator.Evaluation]:
  if digests.differs(fields):
    raise ValueError('changed since it was written')
  violations = tuple(
      placement_lib.Violation(str(kind), str(message))
      for kind, message in fields['violations'])
  seconds = fields['step_time_s']
  if (seconds is None) != bool(violations):
    raise ValueError('a time and a violation, or neither')
  return bytes.fromhex(fields['key']), evaluator.Evaluation(
      math.inf if seconds is None else float(seconds),
      tuple(int(size) for size in fields['peak_bytes']), violations,
      simulated=False, spread_s=float(fields['spread_s']))
