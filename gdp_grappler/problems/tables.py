"""Splits tables that no device of a cluster can hold, offline.

If the graph comes from a traced model, the model is traced once more, with
layers in parts as in a program (`sharding`). So a plan for the result fits the
program. A graph that is read from a file is rewritten instead (`graph.tables`).
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Mapping, Sequence, TYPE_CHECKING

from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler import suggestions
from gdp_grappler.cluster import layer_devices
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.cluster import shortage
from gdp_grappler.placers import step as step_lib
from gdp_grappler.sharding import choice

if TYPE_CHECKING:
  # These modules import TensorFlow, which a graph with its own costs does not
  # need.
  from gdp_grappler.graph import source_graph
  from gdp_grappler.graph.tables import finding

Tell = Callable[[str], None]
# Tables with the numbers of their parts.
_Wanted = list[tuple['finding.Table', int]]
# From names of layers with numbers of parts to the graph with these parts.
Trace = Callable[[Mapping[str, int]], 'source_graph.SourceGraph']


def split(
    step: step_lib.Step, chosen: choice.Choice, trace: Trace | None, tell: Tell,
    layers: plan_lib.Layers = ()) -> source_graph.SourceGraph | None:
  """Returns the graph of a step with split tables; None if no table is split.

  Args:
    step: A step of a graph whose tables are whole.
    chosen: The tables that the user wants to split.
    trace: Function that traces the graph anew; None if the graph is not traced.
    tell: Function that is called with a line for each table that is split.
    layers: A map of layers that will place the step. Tables that the map places
      stay whole, unless the user wants parts of them.

  Raises:
    GdpError: a name fits no table, or a table that was named cannot be split.
  """
  if step.source is None or chosen == choice.OFF:
    return None
  wanted = _wanted(step, chosen)
  if chosen == choice.AUTO and layers:
    wanted = _not_mapped(step, wanted, layers, tell)
  if not wanted:
    return None
  counts = {table.label: count for table, count in wanted}
  try:
    result = _in_parts(step.source, wanted, counts, trace)
  except errors.InvalidGraphError as error:
    if chosen != choice.AUTO:
      raise
    tell(f'No table was split: {error}')
    return None
  rooms = shortage.rooms_bytes(step.cluster)
  for table, count in wanted:
    tell(
        f'The table "{table.label}", {shortage.size(table.bytes)}, with its '
        f'slots and gradient {shortage.size(table.needs_bytes)}, is in {count} '
        'parts: '
        + ('as asked for.' if chosen != choice.AUTO else
           f'the largest device has room for {shortage.size(max(rooms))}.'))
  return result


def advice(step: step_lib.Step, chosen: choice.Choice, is_made: bool) -> str:
  """Returns advice on splitting tables that no device can hold, or ''.

  Args:
    step: A step that does not fit.
    chosen: The tables that the user wants to split.
    is_made: Whether the user gave a model that is made already, whose tables
      stay whole.
  """
  if step.source is None or (chosen == choice.AUTO and not is_made):
    return ''
  too_large = [(table.label.partition(choice.PART), count)
               for table, count in _wanted(step, choice.AUTO)]
  # A dict keeps one entry for all parts of a table.
  cuts = ', '.join(
      dict.fromkeys(f'"{name}" into '
                    + ('more parts' if is_part else f'{count} parts')
                    for (name, is_part, _), count in too_large))
  if not cuts:
    return ''
  if is_made:
    return f'Give a function that makes the model, which cuts {cuts}.'
  return f'{spelling.argument("split_tables", choice.AUTO)} cuts {cuts}.'


def like(source: source_graph.SourceGraph,
         step: step_lib.Step) -> source_graph.SourceGraph:
  """Splits a graph's tables like those of a step with a part of the graph.

  Args:
    source: The whole graph of a file.
    step: A step that was read from the same file.
  """
  if step.source is None or not step.source.tables:
    return source
  from gdp_grappler.graph.tables import finding
  counts = dict(step.source.tables)
  whole = step_lib.of_source(source, step.cluster)
  found = [t for t in finding.tables(source, whole.graph) if t.label in counts]
  return finding.in_parts(source, found, lambda table: counts[table.label])


def _not_mapped(step: step_lib.Step, wanted: _Wanted, layers: plan_lib.Layers,
                tell: Tell) -> _Wanted:
  """Returns the tables that a map of layers does not place."""
  graph = step.graph
  names = [own or op for own, op in zip(graph.variables, graph.names)]
  devices = dict(zip(names, layer_devices.of_variables(layers, names)))
  result = []
  for table, count in wanted:
    device = devices.get(table.label)
    if device:
      tell(f'The table "{table.label}", {shortage.size(table.bytes)}, stays '
           f'whole: the map of layers puts it on {device}. Without the map it '
           f'would be in {count} parts.')
    else:
      result.append((table, count))
  return result


def _in_parts(source: source_graph.SourceGraph,
              wanted: Sequence[tuple[finding.Table, int]], counts: Mapping[str,
                                                                           int],
              trace: Trace | None) -> source_graph.SourceGraph:
  from gdp_grappler.graph import variable_names
  from gdp_grappler.graph.tables import finding
  if trace is None:
    return finding.in_parts(source, [table for table, _ in wanted],
                            lambda table: counts[table.label])
  layers = {table.layer: count for table, count in wanted}
  result = trace(layers)
  made = {variable_names.of(node) for node in result.graph_def.node}
  for table, _ in wanted:
    if f'{table.label}{choice.PART}0' not in made:
      raise errors.InvalidGraphError(
          f'The layer of "{table.label}" is of a kind that cannot be made in '
          'parts; Embedding and Dense can.')
  return dataclasses.replace(result, tables=tuple(layers.items()))


def _wanted(step: step_lib.Step, chosen: choice.Choice) -> _Wanted:
  """Returns the tables to split, each with the number of its parts."""
  from gdp_grappler.graph.tables import finding
  assert step.source is not None
  found = finding.tables(step.source, step.graph)
  if isinstance(chosen, str):
    rooms = shortage.rooms_bytes(step.cluster)
    counts = [choice.parts_for(table.needs_bytes, rooms) for table in found]
    return [(table, n) for table, n in zip(found, counts) if n > 1]
  result: dict[str, tuple[finding.Table, int]] = {}
  for pattern, count in chosen:
    matching = [table for table in found if finding.matches(pattern, table)]
    if not matching:
      raise errors.GdpError(
          f'split_tables names "{pattern}", which is no table of '
          f'{step.source.name}.' + suggestions.did_you_mean(
              pattern, [name for t in found
                        for name in (t.layer, t.label)], similarity=.3))
    for table in matching:
      result.setdefault(table.label, (table, count))
  return [item for item in result.values() if item[1] > 1]
