"""A placement on disk: JSON from op to device, to be read and edited.

    {
      "format": "gdp-plan",
      "version": 1,
      "graph": "inception",
      "fingerprint": "0123456789abcdef",
      "cluster": "2xP100",
      "devices": {"conv1/Conv2D": "GPU:0", ...},
      "digest": "89abcdef01234567"
    }

A cluster that is no preset is written out in full where its name stands here.
A plan with an order also has "priorities": {"conv1/Conv2D": 0.0123, ...}; ready
ops of a device start in order of decreasing priority. One that may have float
arithmetic on another kind of device than it would be on by itself, where it is
rounded otherwise, has "may_round": true. "placed_by" names the placer, or says
that it was a map of layers, which is in "layers" then: {"encoder": "GPU:0"}.
What is edited since is nobody's. The digest is of the other fields. A plan
without one, or edited since, is as good as any; the latter is told in a line,
as a flipped bit looks the same.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import os
from typing import Any, Mapping, Sequence

from absl import logging
import numpy as np

from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import suggestions
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_json
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.graph import op_graph

_FORMAT, _VERSION = 'gdp-plan', 1
_FIELDS = ('format', 'version', 'graph', 'fingerprint', 'cluster', 'devices',
           'priorities', 'may_round', 'placed_by', 'layers', digests.FIELD)
_LARGEST_PRIORITY = 1e300
_REMEDY = 'Make it again with `gdp place GRAPH --output=FILE`.'

# Pairs of a pattern of layers and a device.
Layers = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Plan:
  """What a plan file says, before any graph is at hand.

  Attributes:
    graph: Name of the graph.
    fingerprint: Of the graph.
    cluster: The cluster it was made for.
    devices: Op -> device as written, 'GPU:0'.
    priorities: Op -> priority; None for first in, first out.
    may_round: Whether ops may be where they compute other numbers.
    placed_by: Who chose the devices; '' if nobody says, or others since.
    layers: The map of layers that chose them: patterns and devices; () if none
      did, or others since.
  """

  graph: str
  fingerprint: str
  cluster: cluster_lib.Cluster
  devices: dict[str, str]
  priorities: dict[str, float] | None = None
  may_round: bool = False
  placed_by: str = ''
  layers: Layers = ()


def digest(graph: op_graph.OpGraph, placement: placement_lib.Placement) -> str:
  """Hex digits that differ where a plan file would."""
  priorities = placement.priorities
  return digests.of({
      'graph': graph.name,
      'cluster': placement.cluster.to_json(),
      'devices': placement.devices.tolist(),
      'priorities': None if priorities is None else priorities.tolist(),
  })


def save(path: str, graph: op_graph.OpGraph, placement: placement_lib.Placement,
         placed_by: str = '', layers: Layers = (),
         private: bool = False) -> None:
  """Writes a plan; a file that was there stays whole until the new one is.

  Args:
    path: The file.
    graph: With N ops.
    placement: Of this graph.
    placed_by: As of `Plan`.
    layers: As of `Plan`.
    private: Whether nobody else may read it; makes missing folders that nobody
      else may read.

  Raises:
    GdpError: the disk is full, or the file cannot be written.
    PlanError: the placement is of another graph, or a priority is no number.
  """
  _check_placement(graph, placement)
  labels = placement.cluster.device_labels
  fields = {
      'format': _FORMAT, 'version': _VERSION, 'graph': graph.name,
      'fingerprint': graph.fingerprint, 'cluster': _describe(placement.cluster),
      'devices': {
          name: labels[device]
          for name, device in zip(graph.names, placement.devices.tolist())
      }
  }
  if placement.priorities is not None:
    fields['priorities'] = dict(zip(graph.names, placement.priorities.tolist()))
  if graph.may_round:
    fields['may_round'] = True
  if placed_by:
    fields['placed_by'] = placed_by
  if layers:
    fields['layers'] = dict(layers)
  files.write_atomically(path,
                         json.dumps(digests.sealed(fields), indent=1) + '\n',
                         make_folder=private, private=private)


def load(path: str, graph: op_graph.OpGraph,
         cluster: cluster_lib.Cluster | None = None) -> placement_lib.Placement:
  """Reads a plan for a graph.

  Whether the placement keeps the graph's rules is not looked at: after an
  edit it may not. `Placement.violations` tells.

  Args:
    path: The file.
    graph: The graph it was made for.
    cluster: Whose devices the plan names; by default the plan's own.

  Raises:
    PlanError: missing or damaged, for another graph, or with ops or devices
      that do not exist, or priorities for some ops only.
  """
  plan = read(path)
  _check_graph(path, plan, graph)
  cluster = cluster or plan.cluster
  numbers = {
      name: device_index(path, name, plan, cluster)
      for name in dict.fromkeys(plan.devices.values())
  }
  devices = np.array([numbers[plan.devices[op]] for op in graph.names],
                     np.int32)
  if plan.priorities is None:
    return placement_lib.Placement(devices, cluster)
  priorities = np.array([plan.priorities[op] for op in graph.names], np.float64)
  return placement_lib.Placement(devices, cluster, priorities)


def read(path: str) -> Plan:
  """Reads a plan file.

  Raises:
    PlanError: missing or damaged.
  """
  fields = _parsed(path)
  _check_fields(path, fields)
  edited = digests.differs(fields)
  if edited:
    _notice(str(path))
  return Plan(fields['graph'], fields['fingerprint'],
              _cluster(path, fields['cluster']), fields['devices'],
              fields.get('priorities'), fields.get('may_round', False),
              '' if edited else fields.get('placed_by', ''),
              () if edited else tuple(fields.get('layers', {}).items()))


def read_layers(path: str) -> dict[str, str] | None:
  """The map of layers in a file, `{"encoder": "GPU:0"}`; None of a plan.

  Raises:
    PlanError: missing or damaged.
  """
  fields = _parsed(path)
  if not isinstance(
      fields,
      dict) or not fields or set(fields) & {'format', 'devices', 'fingerprint'}:
    return None
  return fields if all(isinstance(d, str) for d in fields.values()) else None


def _parsed(path: str) -> Any:
  try:
    data = files.read(path)
  except OSError as error:
    raise errors.PlanError(
        f'Cannot read plan {path}: {error.strerror}. {_REMEDY}') from error
  try:
    return files.parse_json(data, _unique)
  except UnicodeDecodeError as error:
    raise _damaged(path, 'it is not text') from error
  except ValueError as error:
    raise _damaged(path, str(error)) from error


@functools.cache  # Once per process: a plan may be read for every graph.
def _notice(path: str) -> None:
  logging.warning(
      'Plan %s was changed since it was written. If nobody edited it, it is '
      'damaged. %s', path, _REMEDY)


def _check_placement(graph: op_graph.OpGraph,
                     placement: placement_lib.Placement) -> None:
  if len(placement.devices) != graph.num_ops:
    raise errors.PlanError(
        f'A placement of {len(placement.devices)} ops is no plan for graph '
        f'"{graph.name}" with {graph.num_ops}. Place this graph.')
  if placement.priorities is not None and (placement.priorities.shape != (
      graph.num_ops,) or not np.isfinite(placement.priorities).all()):
    raise errors.PlanError(
        f'The priorities of the {graph.num_ops} ops of graph "{graph.name}" '
        'are not one finite number each. Order this placement again.')


def _describe(cluster: cluster_lib.Cluster) -> Any:
  """A preset's name, or all of another cluster."""
  if presets.has_name_of(cluster):
    return cluster.name
  return json.loads(cluster.to_json())


def has_name(data: bytes) -> bool:
  """Whether the beginning of a file has the name of the format of plans."""
  return f'"{_FORMAT}"'.encode() in data


def is_plan(fields: Mapping[str, Any]) -> bool:
  """Whether an object from a JSON file is a plan of ops."""
  return fields.get('format') == _FORMAT


def cluster_of(path: str, fields: Mapping[str, Any]) -> cluster_lib.Cluster:
  """The cluster of a plan that was read from a file.

  Raises:
    PlanError: it is damaged.
  """
  _check_fields(path, fields)
  return _cluster(path, fields['cluster'])


def _cluster(path: str,
             description: str | Mapping[str, Any]) -> cluster_lib.Cluster:
  try:
    if isinstance(description, str):
      return presets.preset(description)
    return cluster_json.from_json(json.dumps(description), 'its cluster')
  except errors.ClusterError as error:
    raise _damaged(path, str(error)) from error


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
  """An object whose keys differ; an edit easily leaves an op twice."""
  twice = [
      k for k, n in collections.Counter(k for k, _ in pairs).items() if n > 1
  ]
  if twice:
    raise ValueError(f'"{twice[0]}" is there twice; remove one')
  return dict(pairs)


def _check_fields(path: str, fields: Sequence[Any] | Mapping[str, Any]) -> None:
  if not isinstance(fields, dict) or fields.get('format') != _FORMAT:
    raise _damaged(path, f'it lacks "format": "{_FORMAT}"')
  if fields.get('version') != _VERSION:
    raise errors.PlanError(
        f'Plan {path} has version {fields.get("version")!r}; this program '
        f'reads {_VERSION}. {_REMEDY}')
  _check_names(path, fields)
  for key, kinds in (('graph', str), ('fingerprint', str),
                     ('cluster', (str, dict)), ('devices', dict)):
    if not isinstance(fields.get(key), kinds):
      raise _damaged(path, f'"{key}" is missing or not of the right type')
  for op, device in fields['devices'].items():
    if not isinstance(device, str):
      raise _damaged(path, f'the device of "{op}" is {device!r}')
  if not isinstance(fields.get('may_round', False), bool):
    raise _damaged(path, '"may_round" is neither true nor false')
  if not isinstance(fields.get('placed_by', ''), str):
    raise _damaged(path, '"placed_by" is no text')
  layers = fields.get('layers', {})
  if not (isinstance(layers, dict) and
          all(isinstance(device, str) for device in layers.values())):
    raise _damaged(path, '"layers" is not an object from layer to device')
  _check_priorities(path, fields)


def _check_names(path: str, fields: dict[str, Any]) -> None:
  """A misspelt field would be lost without a word."""
  for key in fields:
    if key not in _FIELDS:
      remedy = (suggestions.did_you_mean(key, _FIELDS) or
                f' Remove it; there are {", ".join(_FIELDS)}.')
      raise errors.PlanError(
          f'Plan {path} has an unknown field "{key}".{remedy}')


def _check_priorities(path: str, fields: dict[str, Any]) -> None:
  """None, or a number for each op that has a device."""
  if 'priorities' not in fields:
    return
  priorities, devices = fields['priorities'], fields['devices']
  if not isinstance(priorities, dict):
    raise _damaged(path, '"priorities" is not an object from op to number')
  for op, value in priorities.items():
    if op not in devices:
      raise _damaged(path, f'"priorities" has "{op}", which "devices" lacks')
    if (isinstance(value, bool) or not isinstance(value, (int, float)) or
        not abs(value) <= _LARGEST_PRIORITY):
      raise _damaged(
          path, f'in "priorities", that of "{op}" is {value!r}, not '
          'a finite number')
  lacking = next((op for op in devices if op not in priorities), None)
  if lacking is not None:
    raise _damaged(path, f'"priorities" lacks "{lacking}"')


def _check_graph(path: str, plan: Plan, graph: op_graph.OpGraph) -> None:
  """Same fingerprint, same ops."""
  known = set(graph.names)
  unknown = [op for op in plan.devices if op not in known]
  missing = [op for op in graph.names if op not in plan.devices]
  if plan.fingerprint != graph.fingerprint:
    detail = (f'{_some("unknown op", unknown)}, '
              f'{_some("missing op", missing)}') if unknown or missing else (
                  'the ops are the same but not their sizes or edges, as '
                  'with another batch size')
    other = (f'not for "{graph.name}"' if plan.graph != graph.name else
             f'but this "{graph.name}" has another fingerprint')
    raise errors.PlanError(
        f'Plan {path} was made for graph "{plan.graph}", {other}: {detail}. '
        'Give the graph it was made for, or place this one.')
  if unknown or missing:
    raise errors.PlanError(
        f'Plan {path} does not fit graph "{graph.name}": '
        f'{_some("unknown op", unknown)}, {_some("missing op", missing)}. '
        'Correct their names.')


def _some(what: str, ops: Sequence[str]) -> str:
  plural = '' if len(ops) == 1 else 's'
  example = f' (such as "{ops[0]}")' if ops else ''
  return f'{len(ops)} {what}{plural}{example}'


def device_index(path: str, name: str, plan: Plan,
                 cluster: cluster_lib.Cluster) -> int:
  """Index in a cluster of a device that a plan names.

  Raises:
    PlanError: the cluster lacks it.
  """
  try:
    return cluster.device_index(name)
  except errors.ClusterError as error:
    op = next(op for op, device in plan.devices.items() if device == name)
    raise errors.PlanError(
        f'Plan {path} puts "{op}" where it cannot go. {error} Use one of '
        'these.') from error


def _damaged(path: str | os.PathLike[str], why: str) -> errors.PlanError:
  return errors.PlanError(f'{path} is not a plan: {why.rstrip(".")}. '
                          f'{_REMEDY}')
