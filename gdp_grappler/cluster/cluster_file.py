"""Reads and writes cluster files: our JSON, or TensorFlow's messages.

There are four forms, which the content of the file tells apart:

* JSON of a `cluster.Cluster`: "name", "devices", "links", as `gdp cluster NAME
  --json` prints it. This form needs no TensorFlow.
* JSON of TensorFlow's messages: "devices" is a list of `NamedDevice`
  (tensorflow/core/protobuf/device_properties.proto), each with "name" and
  "properties".
* The same as protobuf text.
* A plan file: the cluster that the plan was made for.

`named_devices` describes the second and the third form.
"""

from __future__ import annotations

import pathlib
import types
from typing import Any, Mapping, Sequence

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_json
from gdp_grappler.cluster import plan

# Largest size of a cluster file. Ten thousand links are smaller. A plan file,
# which has a cluster, may be larger.
_MOST_BYTES = 16 << 20
# Bytes at the beginning of a plan file that contain the name of its format.
_HEAD_BYTES = 4096
_TEXT_SUFFIXES = ('.pbtxt', '.txt', '.textproto')
SUFFIXES = ('.json', *_TEXT_SUFFIXES)  # Of cluster files.


def read(path: str) -> cluster_lib.Cluster:
  """Reads a cluster file of any form.

  Raises:
    ClusterError: the file is missing or wrong.
    PlanError: the file is a damaged plan.
  """
  text = _text(path)
  if not text.strip():
    raise cluster_json.not_a_cluster_file(path, 'it is empty')
  is_json = text.lstrip()[0] in '{['
  if is_json or pathlib.Path(path).suffix not in _TEXT_SUFFIXES:
    try:
      fields = files.parse_json(text, files.unique)
    except ValueError as error:
      if is_json or not _looks_like_text(text):
        raise cluster_json.not_a_cluster_file(path, str(error)) from error
    else:
      return _from_json(fields, path)
  return _named_devices().from_text(text, path)


def write(path: str, cluster: cluster_lib.Cluster) -> None:
  """Writes a cluster: JSON, or protobuf text for the suffixes of such text.

  Raises:
    ClusterError: the cluster has calibrations, which protobuf text cannot hold.
    GdpError: the file cannot be written.
  """
  if pathlib.Path(path).suffix in _TEXT_SUFFIXES:
    if cluster.calibrated:
      raise errors.ClusterError(
          f'Cannot write {path}: protobuf text cannot hold what was calibrated.'
          ' End its name in .json.')
    files.write_atomically(path, _named_devices().to_text(cluster))
  else:
    files.write_atomically(path, cluster.to_json() + '\n')


def _from_json(fields: int | Sequence[Any] | Mapping[str, Any] | None,
               path: str) -> cluster_lib.Cluster:
  if isinstance(fields, dict) and plan.is_plan(fields):
    return plan.cluster_of(path, fields)
  if fields == []:
    raise cluster_json.not_a_cluster_file(path, 'it lists no devices')
  if isinstance(fields, list):
    fields = {'devices': fields}
  devices = fields.get('devices') if isinstance(fields, dict) else None
  if isinstance(devices, list) and any(
      isinstance(device, dict) and 'properties' in device
      for device in devices):
    return _named_devices().from_json(fields, path)
  return cluster_json.from_fields(fields, path)


def _named_devices() -> types.ModuleType:
  """The module `named_devices`, which imports TensorFlow when it is needed."""
  from gdp_grappler.cluster import named_devices
  return named_devices


def _text(path: str) -> str:
  try:
    data = files.read(path)
    if len(data) > _MOST_BYTES and not plan.has_name(data[:_HEAD_BYTES]):
      raise files.too_large(path, _MOST_BYTES)
    return data.decode('utf-8-sig')
  except OSError as error:
    raise errors.ClusterError(
        f'Cannot read cluster file {path}: {error.strerror}.') from error
  except UnicodeDecodeError as error:
    raise cluster_json.not_a_cluster_file(path, 'it is not text') from error


def _looks_like_text(text: str) -> bool:
  """Whether the first line that is not a comment may be protobuf text."""
  lines = (line.strip() for line in text.splitlines())
  first = next((l for l in lines if l and not l.startswith('#')), '')
  return first.split(':')[0].split('{')[0].strip().isidentifier() and any(
      mark in first for mark in ':{')
