"""Reads a graph of nodes, edges, costs and sizes in plain JSON.

docs/graph_json.md describes the format.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Sequence

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import suggestions
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.costed import given

SCHEMA = 'gdp-graph/1'
_REMEDY = 'The page docs/graph_json.md of gdp-grappler describes the format.'
_GRAPH = ('schema', 'name', 'defaults', 'nodes', 'edges', 'control_edges',
          'notes')
_NODE = ('name', 'op', 'seconds', 'flops', 'io_bytes', 'memory', 'workspace',
         'outputs', 'colocate', 'device', 'cpu', 'gpu', 'notes')
_EDGE = ('from', 'to', 'output', 'bytes', 'control', 'notes')
_OP = 'Op'
_PIN = re.compile(
    r'(/job:[^/]+/replica:\d+/task:\d+)?(/?device:|/)?(CPU|GPU):\d+', re.ASCII)


def is_graph_json(data: bytes) -> bool:
  """Whether bytes are JSON, not any other kind of graph."""
  return data[:4096].lstrip(b'\xef\xbb\xbf \t\r\n').startswith((b'{', b'['))


def read(path: str, data: bytes) -> tuple[op_graph.OpGraph, given.GivenCosts]:
  """Reads a graph.

  Args:
    path: Path of the file, for messages.
    data: Content of the file.

  Raises:
    InvalidGraphError: the file is not JSON, or a node, an edge or a field is
      wrong.
  """
  fields = parse(path, data)
  _check_fields(path, 'the file', fields, _GRAPH)
  if fields.get('schema', SCHEMA) != SCHEMA:
    raise given.wrong(
        path, 'schema', f'it is {errors.shown(fields["schema"])}; this '
        f'program reads "{SCHEMA}"')
  defaults = fields.get('defaults', {})
  _check_fields(path, 'defaults', defaults, _NODE)
  if 'name' in defaults:
    raise given.wrong(path, 'defaults', 'names differ; leave out "name"')
  ops: list[given.Op] = []
  index: dict[str, int] = {}
  for number, node in enumerate(_list(path, 'nodes', fields.get('nodes'))):
    op = _op(path, number, node, defaults)
    if op.name in index:
      raise given.wrong(path, f'node "{op.name}"',
                        'it appears twice; rename one')
    index[op.name] = len(ops)
    ops.append(op)
  if not ops:
    raise given.wrong(path, 'nodes', 'there are none; give some')
  name = _text(path, 'name', fields.get('name', given.graph_name(path)))
  return given.assemble(path, name, ops, _edges(path, fields, ops, index))


def parse(path: str, data: bytes) -> dict[str, Any]:
  """Returns the fields of a graph, which are not checked.

  Args:
    path: Path of the file, for messages.
    data: Content of the file.

  Raises:
    InvalidGraphError: the file is not JSON, or not of a graph.
  """
  try:
    fields = files.parse_json(data, files.unique)
  except ValueError as error:
    raise errors.InvalidGraphError(
        f'{path} is not JSON: {error}. Write it again. {_REMEDY}') from error
  if isinstance(fields, dict) and {'devices', 'fingerprint'} <= set(fields):
    raise errors.InvalidGraphError(
        f'{path} is a plan, not a graph. Give the graph for which it was made.')
  if not isinstance(fields, dict) or 'nodes' not in fields:
    raise errors.InvalidGraphError(
        f'{path} is JSON but no graph: it is no object with "nodes", such as '
        '{"nodes": [{"name": "a", "seconds": 0.1}, {"name": "b", "seconds": '
        f'0.2}}], "edges": [["a", "b"]]}}. {_REMEDY}')
  return fields


def _op(path: str, number: int, node: Mapping[str, Any],
        defaults: Mapping[str, Any]) -> given.Op:
  """Reads one node."""
  where = f'nodes[{number}]'
  if isinstance(node, dict) and 'name' in node:
    name = _name(path, f'{where}.name', node['name'])
    where = f'node "{name}"'
  _check_fields(path, where, node, _NODE)
  if 'name' not in node:
    raise given.wrong(path, where, '"name" is missing; add it')
  fields = {k: v for k, v in {**defaults, **node}.items() if v is not None}

  def at(field: str) -> str:
    return f'{where}, field "{field}"'

  size = {
      field: given.bytes_of(path, at(field), fields.get(field, 0))
      for field in ('memory', 'workspace')
  }
  work = {
      field:
          float(
              given.number_of(path, at(field), fields.get(field, 0),
                              'a number')) for field in ('flops', 'io_bytes')
  }
  seconds = _seconds(path, at('seconds'), fields)
  pin, allowed = _device(path, at('device'), fields.get('device'))
  for i, kind in enumerate(op_graph.DEVICE_TYPES):
    flag = fields.get(kind.lower(), True)
    if not isinstance(flag, bool):
      raise given.wrong(path, at(kind.lower()),
                        f'it is {errors.shown(flag)}; give true or false')
    allowed[i] &= flag
  if not any(allowed):
    raise given.wrong(
        path, at('device'), 'no device is left with "device", '
        '"cpu" and "gpu" as they are; loosen one')
  return given.Op(
      name, _text(path, at('op'), fields.get('op', _OP)), seconds,
      flops=work['flops'], io_bytes=work['io_bytes'],
      param_bytes=size['memory'], workspace_bytes=size['workspace'],
      outputs=_outputs(path, at('outputs'), fields.get('outputs')),
      group=None if 'colocate' not in fields else _name(
          path, at('colocate'), fields['colocate']), allowed=tuple(allowed),
      pin=pin)


def _seconds(path: str, where: str, fields: dict[str, Any]) -> dict[str, float]:
  """Reads seconds by label; empty if FLOPs or bytes are given instead."""
  value = fields.get('seconds')
  if value is None:
    if 'flops' not in fields and 'io_bytes' not in fields:
      raise given.wrong(
          path, where, 'it is missing; add it, or "flops" or "io_bytes" for '
          'the roofline')
    return {}
  if not isinstance(value, dict):
    return {
        given.ANYWHERE:
            float(given.number_of(path, where, value, 'a number of seconds'))
    }
  if not value:
    raise given.wrong(path, where, 'it is empty; give seconds by device')
  return {
      label:
          float(
              given.number_of(path, f'{where}["{label}"]', number,
                              'a number of seconds'))
      for label, number in value.items()
  }


def _outputs(path: str, where: str, value: object) -> list[int]:
  if value is None:
    return []
  if not isinstance(value, list):
    return [given.bytes_of(path, where, value)]
  return [
      given.bytes_of(path, f'{where}[{i}]', size)
      for i, size in enumerate(value)
  ]


def _device(path: str, where: str, value: object) -> tuple[str, list[bool]]:
  """Returns the pin of a node, and the device types that it leaves."""
  if value is None:
    return '', [True] * len(op_graph.DEVICE_TYPES)
  if value in op_graph.DEVICE_TYPES:
    return '', [kind == value for kind in op_graph.DEVICE_TYPES]
  if not isinstance(value, str) or not _PIN.fullmatch(value):
    raise given.wrong(
        path, where, f'it is {errors.shown(value)}; give "CPU", "GPU", '
        '"GPU:0" or the like, or a full device name')
  return value, [True] * len(op_graph.DEVICE_TYPES)


def _edges(path: str, fields: Mapping[str, Any], ops: Sequence[given.Op],
           index: Mapping[str, int]) -> list[tuple[int, int, int]]:
  """Returns the edges as `given.assemble` takes them; adds outputs to ops."""
  rows = []
  for key in ('edges', 'control_edges'):
    control = key != 'edges'
    for number, edge in enumerate(_list(path, key, fields.get(key, []))):
      where = f'{key}[{number}]'
      rows.append((where, control, _as_object(path, where, edge, control)))
  given_outputs = [bool(op.outputs) for op in ops]
  result = [(0, 0, 0)] * len(rows)
  for i in sorted(range(len(rows)), key=lambda i: _turn(rows[i][-1])):
    result[i] = _edge(path, *rows[i], ops, index, given_outputs)
  return result


def _as_object(path: str, where: str, edge: Any, control: bool) -> Any:
  """Returns an edge of any form as an object."""
  if isinstance(edge, list):
    if len(edge) not in ((2,) if control else (2, 3)):
      raise given.wrong(
          path, where, f'it is {errors.shown(edge)}; give [from, to]' +
          ('' if control else ' or [from, to, bytes]'))
    edge = dict(zip(('from', 'to', 'bytes'), edge))
  _check_fields(path, where, edge, _EDGE)
  return edge


def _turn(edge: Mapping[str, Any]) -> int:
  """Returns the rank of an edge; edges are read in the order of their ranks.

  So the order of edges in the file does not matter.

  Edges that give an output its size come first. Edges that add an output come
  last, because output 0 is the one that edges without bytes read.
  """
  if edge.get('bytes') is None:
    return 1
  return 2 if edge.get('output') is None else 0


def _edge(path: str, where: str, control: bool, edge: Mapping[str, Any],
          ops: Sequence[given.Op], index: Mapping[str, int],
          given_outputs: Sequence[bool]) -> tuple[int, int, int]:
  """Returns (producer, output or -1, consumer); may add that output."""
  source, target = (_end(path, f'{where}, field "{field}"', edge.get(field),
                         index) for field in ('from', 'to'))
  flag = edge.get('control', control)
  if not isinstance(flag, bool):
    raise given.wrong(path, f'{where}, field "control"',
                      f'it is {errors.shown(flag)}; give true or false')
  size, output = edge.get('bytes'), edge.get('output')
  if flag or control:
    if size or output is not None:
      raise given.wrong(
          path, where, 'a control edge carries nothing; leave '
          'out "bytes" and "output"')
    return source, -1, target
  if output is None:
    output = len(ops[source].outputs) if size is not None else 0
  elif isinstance(output, bool) or not isinstance(output, int) or output < 0:
    raise given.wrong(
        path, f'{where}, field "output"', f'it is {errors.shown(output)}; '
        'give the number of an output, from 0 on')
  if size is not None:
    size = given.bytes_of(path, f'{where}, field "bytes"', size)
  _use_output(path, where, ops[source], output, size, given_outputs[source])
  return source, output, target


def _use_output(path: str, where: str, op: given.Op, output: int,
                size: int | None, complete: bool) -> None:
  """Checks that an op has an output of this size, or adds it."""
  outputs = op.outputs
  if output < len(outputs):
    if size is not None and outputs[output] != size:
      raise given.wrong(
          path, f'{where}, field "bytes"', f'it is {size} but output {output} '
          f'of "{op.name}" has {outputs[output]}; give one size')
  elif output > len(outputs) or complete and size is None:
    raise given.wrong(
        path, f'{where}, field "output"', f'it is {output}, but the number of '
        f'outputs of "{op.name}" is {len(outputs)}; add it to the "outputs" of '
        'the node')
  else:
    outputs.append(size or 0)


def _end(path: str, where: str, value: object, index: Mapping[str, int]) -> int:
  if value is None:
    raise given.wrong(path, where, 'it is missing; add it')
  name = _name(path, where, value)
  if name not in index:
    near = suggestions.did_you_mean(name, index) if len(index) < 10000 else ''
    raise given.wrong(
        path, where,
        f'there is no node "{name}"{"." if near else "; add it or correct it"}'
        f'{near}')
  return index[name]


def _name(path: str, where: str, value: object) -> str:
  """Returns a text, or a number as a text."""
  if isinstance(value, int) and not isinstance(value, bool):
    return str(value)
  return _text(path, where, value)


def _text(path: str, where: str, value: object) -> str:
  if not isinstance(value, str) or not value:
    raise given.wrong(path, where, f'it is {errors.shown(value)}; give a text')
  if not value.isprintable():
    raise given.wrong(
        path, where, f'it is {errors.shown(value)}, which cannot be printed; '
        'leave out characters that are not printable')
  return value


def _list(path: str, where: str, value: object) -> list[Any]:
  if not isinstance(value, list):
    raise given.wrong(path, where, f'it is a {type(value).__name__}; give a '
                      'list')
  return value


def _check_fields(path: str, where: str, fields: object,
                  known: Sequence[str]) -> None:
  if not isinstance(fields, dict):
    raise given.wrong(path, where,
                      f'it is {errors.shown(fields)}; give an object')
  for field in fields:
    if field not in known:
      near = suggestions.did_you_mean(field, known)
      raise given.wrong(
          path, where, f'unknown field "{field}"'
          f'{"." + near if near else "; known are " + ", ".join(known)}')
