"""Reads clusters that were written as JSON."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence, TypeVar

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.cluster import cluster as cluster_lib

_Part = TypeVar(
    '_Part', bound=cluster_lib.Device | cluster_lib.Link
    | cluster_lib.Calibrated | cluster_lib.Cluster)


def from_fields(fields: object, origin: str) -> cluster_lib.Cluster:
  """The cluster of a JSON object that `cluster.Cluster.to_json` wrote.

  Args:
    fields: The parsed JSON.
    origin: Path or other origin of the JSON, for the error message.

  Raises:
    ClusterError: a field is missing or unknown, or a figure is wrong.
  """
  if not isinstance(fields, dict):
    raise not_a_cluster_file(origin, 'it is no JSON object')
  try:
    fields = {'name': origin, **fields}
    for field, kind in (('devices', cluster_lib.Device), ('links',
                                                          cluster_lib.Link)):
      fields[field] = tuple(
          _from_object(kind, f'{field}[{index}]', item)
          for index, item in enumerate(_list(field, fields.get(field))))
    fields['notes'] = tuple(_list('notes', fields.get('notes', [])))
    fields['calibrated'] = tuple(
        _calibrated(f'calibrated[{index}]', item) for index, item in enumerate(
            _list('calibrated', fields.get('calibrated', []))))
    return _from_object(cluster_lib.Cluster, '', fields)
  except errors.ClusterError as error:
    raise errors.ClusterError(f'{origin}: {error}') from error


def not_a_cluster_file(origin: str, why: str) -> errors.ClusterError:
  """The error for a text that is not a cluster file at all."""
  return errors.ClusterError(
      f'{origin} is not a cluster file: {why.rstrip(".")}. It is JSON or '
      'protobuf text with "devices" and "links"; `gdp cluster 2xP100 --json` '
      'prints an example.')


def full_name(at: str, name: str) -> str:
  """Full name of a device that a file names in full or for short.

  Args:
    at: Name of the field, for the error message.
    name: Name of the device, such as 'GPU:0'.

  Raises:
    ClusterError: the text is not a device name.
  """
  try:
    full = cluster_lib.canonical_device(name)
  except errors.ClusterError as error:
    raise errors.ClusterError(f'{at}: {error}') from error
  if full.startswith('/job:'):
    return full
  kind, number = full.rsplit('device:', 1)[1].split(':')
  return cluster_lib.local_name(kind, int(number))


def _from_object(kind: type[_Part], at: str, fields: object) -> _Part:
  """A dataclass from a JSON object; `at` is '' for the whole file."""
  if not isinstance(fields, dict):
    raise errors.ClusterError(
        f'{at} is {errors.shown(fields)}; give a JSON object.')
  prefix = f'{at}.' if at else ''
  known = {field.name: field for field in dataclasses.fields(kind)}
  for name in fields:
    if name not in known:
      raise errors.ClusterError(
          f'{prefix}{name} is an unknown field; known are {", ".join(known)}.'
          + suggestions.did_you_mean(name, known))
  for name, field in known.items():
    if name not in fields and field.default is dataclasses.MISSING:
      raise errors.ClusterError(f'{prefix}{name} is missing; add it.')
  ends = {cluster_lib.Device: ('name',), cluster_lib.Link: ('source', 'target')}
  fields = fields | {
      end: full_name(f'{at}.{end}', fields[end]) for end in ends.get(kind, ())
  }
  if kind is cluster_lib.Link:
    channels = _list(f'{at}.channels', fields['channels'])
    fields = {**fields, 'channels': tuple(channels)}
  return kind(**fields)


def _calibrated(at: str, fields: object) -> cluster_lib.Calibrated:
  part = _from_object(cluster_lib.Calibrated, at, fields)
  names = _list(f'{at}.devices', part.devices)
  try:
    found = calibration_lib.from_fields(part.calibration, at)
  except errors.GdpError as error:
    raise errors.ClusterError(str(error)) from error
  return cluster_lib.Calibrated(
      tuple(full_name(f'{at}.devices', name) for name in names), found)


def _list(at: str, value: object) -> Sequence[Any]:
  if not isinstance(value, (list, tuple)):
    problem = ('missing; add it'
               if value is None else f'{errors.shown(value)}; give a list')
    raise errors.ClusterError(f'{at} is {problem}.')
  return value
