"""Plan files: a placement on disk, as JSON that users can read and edit.

    {
      "format": "gdp-plan",
      "version": 1,
      "graph": "inception",
      "fingerprint": "0123456789abcdef",
      "cluster": "2xP100",
      "devices": {"conv1/Conv2D": "GPU:0", ...},
      "digest": "89abcdef01234567"
    }

If the cluster is no preset, "cluster" is the whole cluster instead of a name.
Further fields:

* "priorities": {"conv1/Conv2D": 0.0123, ...}. Ready ops of a device start in
  order of decreasing priority.
* "may_round": true. Float ops may be on devices that round them differently.
* "placed_by": the name of the placer, or a text that a map of layers chose the
  devices. "layers" is this map: {"encoder": "GPU:0"}. Both are ignored if the
  file was edited.
* "tables": {"net/words/embeddings": 4}. Number of parts of each table in
  parts, by the name of its variable. A table that is missing is whole.

The digest is of all other fields. A plan without a digest is valid. So is an
edited plan, but it causes a warning, because a damaged file looks the same.
"""

from __future__ import annotations

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
from gdp_grappler.cluster import numbered_names
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import presets
from gdp_grappler.graph import op_graph
from gdp_grappler.sharding import choice

_FORMAT = 'gdp-plan'
_VERSION = 1  # Of the file's format.
_FIELDS = ('format', 'version', 'graph', 'fingerprint', 'cluster', 'devices',
           'priorities', 'may_round', 'placed_by', 'layers', 'tables',
           digests.FIELD)
# A larger number is a mistake. Sums and products of priorities stay finite.
_LARGEST_PRIORITY = 1e300
_REMEDY = 'Make it again with `gdp place GRAPH --output=FILE`.'

# Pairs of a pattern for layers and a device.
Layers = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Plan:
  """The content of a plan file, which was not compared with a graph yet.

  Attributes:
    graph: Name of the graph.
    fingerprint: Fingerprint of the graph.
    cluster: Cluster for which the plan was made.
    devices: Device of each op as in the file, such as 'GPU:0'.
    priorities: Priority of each op; None means first in, first out.
    may_round: Whether ops may be on devices that round differently.
    placed_by: Name of the placer; '' if unknown, or if the file was edited.
    layers: Map of layers that chose the devices: patterns and devices; () if
      there is none, or if the file was edited.
    tables: Number of parts of each table in parts, by the table's variable;
      None in a plan of an earlier version.
  """

  graph: str
  fingerprint: str
  cluster: cluster_lib.Cluster
  devices: dict[str, str]
  priorities: dict[str, float] | None = None
  may_round: bool = False
  placed_by: str = ''
  layers: Layers = ()
  tables: Mapping[str, int] | None = None


def digest(graph: op_graph.OpGraph, placement: placement_lib.Placement) -> str:
  """Digest of the graph's name, the cluster, the devices and the priorities."""
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
  """Writes a plan atomically: an earlier file stays until the new one is whole.

  Args:
    path: Path of the file.
    graph: N ops.
    placement: Placement of this graph.
    placed_by: Name of the placer, see `Plan`.
    layers: Map of layers, see `Plan`.
    private: Whether other users may not read the file. If so, the function also
      makes missing folders, which other users may not read.

  Raises:
    GdpError: the disk is full, or the file cannot be written.
    PlanError: the placement is of another graph, or a priority is not finite.
  """
  _check_placement(graph, placement)
  cluster, labels = placement.cluster, placement.cluster.device_labels
  is_preset = presets.has_name_of(cluster)
  fields = {
      'format': _FORMAT, 'version': _VERSION, 'graph': graph.name,
      'fingerprint': graph.fingerprint,
      'cluster': cluster.name if is_preset else json.loads(cluster.to_json()),
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
  fields['tables'] = choice.tables_in_parts(graph.variables)
  files.write_atomically(path,
                         json.dumps(digests.sealed(fields), indent=1) + '\n',
                         make_folder=private, private=private)


def load(path: str, graph: op_graph.OpGraph,
         cluster: cluster_lib.Cluster | None = None) -> placement_lib.Placement:
  """Reads a plan for a graph.

  An edited plan may break rules of the graph (`Placement.violations`).

  Args:
    path: Path of the file.
    graph: The plan's graph. Names may differ in the numbers that Keras gives.
    cluster: Cluster that has the plan's devices; None means the plan's cluster.

  Raises:
    PlanError: the file is missing or damaged, is for another graph, has ops or
      devices that do not exist, or has priorities for some ops only.
  """
  plan = _of_graph(path, graph)
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
    PlanError: the file is missing or damaged.
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
              () if edited else tuple(fields.get('layers', {}).items()),
              fields.get('tables'))


def read_layers(path: str) -> dict[str, Any] | None:
  """The map of layers in a file, `{"encoder": "GPU:0"}`; None for a plan.

  The keys and values of the map are not checked (`layer_map.checked`).

  Raises:
    PlanError: the file is missing or damaged.
  """
  fields = _parsed(path)
  if not isinstance(fields, dict):
    raise errors.PlanError(
        f'{path} is neither a plan nor a map of layers. A plan is what `gdp '
        'place GRAPH --output=FILE` writes; a map is, for '
        'example, {"encoder": "GPU:0"}.')
  # A layer may have the name of a field of plans, such as "format".
  is_plan_of_ops = is_plan(fields) or isinstance(fields.get('devices'), dict)
  return None if is_plan_of_ops else fields


def _parsed(path: str) -> Any:
  try:
    data = files.read(path)
  except OSError as error:
    raise errors.PlanError(
        f'Cannot read plan {path}: {error.strerror}. {_REMEDY}') from error
  try:
    return files.parse_json(data, files.unique)
  except UnicodeDecodeError as error:
    raise _damaged(path, 'it is not text') from error
  except ValueError as error:
    raise _damaged(path, str(error)) from error


@functools.cache  # A plan may be read for every graph, but warn only once.
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


def has_name(data: bytes) -> bool:
  """Whether the beginning of a file contains the name of the plan format."""
  return f'"{_FORMAT}"'.encode() in data


def is_plan(fields: Mapping[str, Any]) -> bool:
  """Whether an object from a JSON file is a plan of ops."""
  return fields.get('format') == _FORMAT


def cluster_of(path: str, fields: Mapping[str, Any]) -> cluster_lib.Cluster:
  """The cluster of a plan that was read from a file.

  Raises:
    PlanError: the plan is damaged.
  """
  _check_fields(path, fields)
  return _cluster(path, fields['cluster'])


def _cluster(path: str,
             description: str | Mapping[str, Any]) -> cluster_lib.Cluster:
  try:
    if isinstance(description, str):
      return presets.preset(description)
    return cluster_json.from_fields(description, 'its cluster')
  except errors.ClusterError as error:
    raise _damaged(path, str(error)) from error


def _check_fields(path: str, fields: Sequence[Any] | Mapping[str, Any]) -> None:
  if not isinstance(fields, dict) or fields.get('format') != _FORMAT:
    raise _damaged(path, f'it lacks "format": "{_FORMAT}"')
  if fields.get('version') != _VERSION:
    raise errors.PlanError(
        f'Plan {path} has version {errors.shown(fields.get("version"))}; this '
        f'program reads {_VERSION}. {_REMEDY}')
  _check_names(path, fields)
  for key, kinds in (('graph', str), ('fingerprint', str),
                     ('cluster', (str, dict)), ('devices', dict)):
    if not isinstance(fields.get(key), kinds):
      raise _damaged(path, f'"{key}" is missing or not of the right type')
  for op, device in fields['devices'].items():
    if not isinstance(device, str):
      raise _damaged(path, f'the device of "{op}" is {errors.shown(device)}')
  if not isinstance(fields.get('may_round', False), bool):
    raise _damaged(path, '"may_round" is neither true nor false')
  if not isinstance(fields.get('placed_by', ''), str):
    raise _damaged(path, '"placed_by" is no text')
  for key, valid, what in (('layers', lambda v: isinstance(v, str), 'device'),
                           ('tables', choice.is_count, 'number of parts')):
    values = fields.get(key, {})
    if not (isinstance(values, dict) and all(map(valid, values.values()))):
      raise _damaged(path, f'"{key}" is not an object from name to {what}')
  _check_priorities(path, fields)


def _check_names(path: str, fields: dict[str, Any]) -> None:
  """Raises an error for an unknown field, which may be misspelt."""
  for key in fields:
    if key not in _FIELDS:
      remedy = (suggestions.did_you_mean(key, _FIELDS) or
                f' Remove it; there are {", ".join(_FIELDS)}.')
      raise errors.PlanError(
          f'Plan {path} has an unknown field "{key}".{remedy}')


def _check_priorities(path: str, fields: dict[str, Any]) -> None:
  """Checks that there are no priorities, or one for each op with a device."""
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
          path, f'in "priorities", that of "{op}" is {errors.shown(value)}, '
          'not a finite number')
  lacking = next((op for op in devices if op not in priorities), None)
  if lacking is not None:
    raise _damaged(path, f'"priorities" lacks "{lacking}"')


def _of_graph(path: str, graph: op_graph.OpGraph) -> Plan:
  """The plan of a file, with the names of ops in a graph."""
  plan = read(path)
  before = numbered_names.names_before(graph, plan.devices, plan.fingerprint)
  if before is None or before is graph.names:
    _check_graph(path, plan, graph)
    return plan

  def named(values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[old] for name, old in zip(graph.names, before)}

  return dataclasses.replace(
      plan, devices=named(plan.devices), priorities=plan.priorities and
      named(plan.priorities))


def _check_graph(path: str, plan: Plan, graph: op_graph.OpGraph) -> None:
  """Checks that the plan has the fingerprint and the ops of the graph."""
  known = set(graph.names)
  unknown = [op for op in plan.devices if op not in known]
  missing = [op for op in graph.names if op not in plan.devices]
  both = f'{_some("unknown op", unknown)}, {_some("missing op", missing)}'
  if plan.fingerprint != graph.fingerprint:
    detail = both if unknown or missing else (
        'sizes or edges of ops differ, as they do with another batch size')
    other = (f'not for "{graph.name}"' if plan.graph != graph.name else
             f'but this "{graph.name}" has another fingerprint')
    raise errors.PlanError(
        f'Plan {path} was made for graph "{plan.graph}", {other}: {detail}. '
        'Give the graph it was made for, or place this one.')
  if unknown or missing:
    raise errors.PlanError(
        f'Plan {path} does not fit graph "{graph.name}": {both}. Name '
        'all ops of the graph, and no others.')


def _some(what: str, ops: Sequence[str]) -> str:
  example = f' (such as "{ops[0]}")' if ops else ''
  return f'{len(ops)} {what}{"s" * (len(ops) != 1)}{example}'


def device_index(path: str, name: str, plan: Plan,
                 cluster: cluster_lib.Cluster) -> int:
  """Index in a cluster of a device that a plan names.

  Raises:
    PlanError: the cluster lacks the device, or the text is no name of one.
  """
  try:
    return cluster.device_index(name)
  except errors.ClusterError as error:
    # The name of one op of several may be TensorFlow's, such as "unknown_41".
    ops = [op for op, device in plan.devices.items() if device == name]
    which = f'"{ops[0]}"' if len(ops) == 1 else f'{len(ops)} ops'
    remedy = ' Place the graph for this cluster.'
    if isinstance(error, errors.DeviceNameError):
      remedy = suggestions.did_you_mean(name, cluster.device_labels)
    raise errors.PlanError(
        f'Plan {path} cannot place {which}. {error}{remedy}') from error


def _damaged(path: str | os.PathLike[str], why: str) -> errors.PlanError:
  return errors.PlanError(f'{path} is not a plan: {why.rstrip(".")}. '
                          f'{_REMEDY}')
