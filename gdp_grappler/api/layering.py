"""A placed step by layer: device, memory, time and tensors that are sent.

Each layer of the outermost model has a row. Layers inside a layer have rows
only if the plan spreads that layer over devices. In a deep model, consecutive
layers on one device share a row.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Callable, Iterable, Iterator, Sequence, TYPE_CHECKING

import numpy as np

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import layer_map
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.placers.plans import layer_order
from gdp_grappler.placers.plans import layers as layers_lib
from gdp_grappler.placers.plans import part_names
from gdp_grappler.placers.plans import updates
from gdp_grappler.reports import units
from gdp_grappler.sharding import choice

if TYPE_CHECKING:
  # The module needs TensorFlow, but a graph with its own costs does not.
  from gdp_grappler.graph import source_graph

# The row of ops that are in no layer, such as the counter of steps.
NO_LAYER = '*'
# A layer is spread if other devices have more than this share of its seconds or
# bytes.
_MATTERS = .05
# Columns of the table that contain numbers.
NUMBERS = (2, 3, 4, 5)
# Above this number of rows, layers of different kinds may share a row.
_MOST_ROWS = 32
# Least number of consecutive layers of one kind that share a row.
_LEAST_JOINED = 3
_NUMBERS = re.compile(r'\d+')


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
  """The ops of a row, int [K], and the names of their layer."""

  name: str
  full_name: str
  ops: np.ndarray


@dataclasses.dataclass(frozen=True)
class LayerRow:
  """A layer of a placed step, or several consecutive layers.

  Attributes:
    name: Name of the layer, such as 'encoder/attention'; '*' for the ops that
      are in no layer.
    last: Name of the last of several layers; '' for a single layer.
    layers: Number of layers.
    device: Label of the device with most of the layer's seconds or, if the ops
      take no time, with most of its bytes.
    ops: Number of ops, including gradients and updates.
    elsewhere: Numbers of these ops on other devices, by label.
    parameter_bytes: Bytes of the variables, without the optimizer's slots.
    memory_bytes: Bytes of the variables with slots, and of all tensors that the
      layer makes in a step. Not all of them exist at the same time.
    seconds: Sum of the seconds of its ops in the simulated step.
    cut_tensors: Number of tensors that the layer sends to other devices.
    cut_bytes: Bytes of these tensors.
  """

  name: str
  last: str
  layers: int
  device: str
  ops: int
  elsewhere: dict[str, int]
  parameter_bytes: int
  memory_bytes: int
  seconds: float
  cut_tensors: int
  cut_bytes: int

  @property
  def label(self) -> str:
    """Name of the row: 'block_0' or 'block_0 to block_11 (12)'."""
    if self.layers == 1:
      return self.name
    return f'{self.name} to {self.last} ({self.layers})'

  @property
  def where(self) -> str:
    """The device: 'GPU:0', or 'GPU:0, 71 %' if some ops are elsewhere."""
    others = sum(self.elsewhere.values())
    share = int(100 * (self.ops - others) / self.ops)
    return f'{self.device}, {share} %' if others else self.device

  def with_next(self, other: LayerRow) -> LayerRow:
    """Returns this row joined with the next one on the same device."""
    return LayerRow(
        self.name, other.last or other.name, self.layers + other.layers,
        self.device, self.ops + other.ops, {
            device:
                self.elsewhere.get(device, 0) + other.elsewhere.get(device, 0)
            for device in (*self.elsewhere, *other.elsewhere)
        }, *(getattr(self, field) + getattr(other, field) for field in _SUMMED))


_SUMMED = ('parameter_bytes', 'memory_bytes', 'seconds', 'cut_tensors',
           'cut_bytes')


def table(found: Sequence[LayerRow]) -> list[tuple[str, ...]]:
  """Returns rows for a terminal or a page, the head first."""
  result: list[tuple[str, ...]] = [('layer', 'device', 'parameters', 'memory',
                                    'takes', 'cut')]
  for row in found:
    sent = (f'{units.amount(row.cut_bytes, "B")} '
            f'({row.cut_tensors})' if row.cut_tensors else '')
    result.append((row.label, row.where, units.amount(row.parameter_bytes, 'B'),
                   units.amount(row.memory_bytes,
                                'B'), units.ms(row.seconds), sent))
  return result


class Layering:
  """The layers of a placed step of N ops."""

  def __init__(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement,
               schedule: schedule_lib.Schedule,
               source: source_graph.SourceGraph | None = None) -> None:
    """Computes the bytes, seconds and sent tensors of ops.

    Args:
      graph: N ops.
      placement: Placement of these ops.
      schedule: Schedule of this placement.
      source: The graph that was read, which has the order of the layers.
    """
    self._graph, self._placement = graph, placement
    self._order = layer_order.LayerOrder(graph, source)
    self._labels = placement.cluster.device_labels
    self._seconds = schedule.end_s - schedule.start_s
    makes = np.array([k not in op_kinds.ALIASES for k in graph.op_types], bool)
    self._held = graph.param_bytes + np.where(makes, graph.output_bytes, 0)
    self._serves = updates.serving(graph)
    self._in_optimizers = updates.in_optimizers(graph)
    slots = self._serves & ~layers_lib.statistics(graph)
    self._weights = np.where(slots, 0, graph.param_bytes)

  @functools.cached_property
  def rows(self) -> tuple[LayerRow, ...]:
    """Returns the rows in the order of the model."""
    return tuple(map(self._row, self._parts))

  def folded(self, most: int = _MOST_ROWS) -> tuple[LayerRow, ...]:
    """Returns rows, with consecutive layers on one device joined.

    Args:
      most: Number of rows above which a layer that is spread has one row, and
        layers of several kinds are joined.
    """
    found = _folded(self.rows, _is_same_kind, _LEAST_JOINED)
    if len(found) > most:
      found = _folded(map(self._row, self._with_rows(False)), _is_same_kind,
                      _LEAST_JOINED)
    return found if len(found) <= most else _folded(found, _shares_device)

  def as_map(self) -> dict[str, str]:
    """Returns a map from layers to devices. A layer gets its main device.

    The main device has most of the layer's seconds. If the plan may not round,
    only those devices count on which the fewest ops would round differently. So
    the map of a plan that keeps numbers keeps them, too, where possible.
    Optimizers are no layers, because slots and updates follow their variables.
    If the parts of a table are on several devices, each part has an entry.
    """
    chosen = [
        (part, row) for part, row in zip(self._parts, self.rows)
        if not self._in_optimizers[part.ops].all() or part.name == NO_LAYER
    ]
    names = self._unique_names([part for part, _ in chosen])
    found = layer_map.match(names, self._graph.names,
                            layers_lib.names(self._graph)).patterns
    result: dict[str, str] = {}
    for number, (name, (part, _)) in enumerate(zip(names, chosen)):
      matched = np.flatnonzero(found == number)
      if matched.size:
        # The pattern '*' also matches the arithmetic of optimizers.
        rounds = self._rounds[np.union1d(part.ops, matched)].sum(axis=0)
        result[name] = self._labels[self._most(part.ops, rounds)]
    return result | self._parts_of_tables()

  def _parts_of_tables(self) -> dict[str, str]:
    """The devices of parts of tables, if the parts are on several devices."""
    graph = self._graph
    tables: dict[str, dict[str, str]] = {}
    parts = [v for v in dict.fromkeys(graph.variables) if choice.is_part(v)]
    found = layer_map.match(parts, part_names.of(graph),
                            layers_lib.names(graph)).patterns
    for number, part in enumerate(parts):
      ops = np.flatnonzero(found == number)
      if ops.size:  # A part whose layer is outside of the model has no ops.
        device = self._most(ops, self._rounds[ops].sum(axis=0))
        table = tables.setdefault(part.rpartition(choice.PART)[0], {})
        table[part] = self._labels[device]
    return {
        part: device for table in tables.values()
        if len(set(table.values())) > 1 for part, device in table.items()
    }

  @functools.cached_property
  def _rounds(self) -> np.ndarray:
    """bool [N, D], devices that an op may not have because it would round."""
    graph, cluster = self._graph, self._placement.cluster
    if graph.may_round:
      return np.zeros((graph.num_ops, cluster.num_devices), bool)
    return constraints.changes_numbers_on(graph, cluster)

  def _unique_names(self, parts: Sequence[_Part]) -> list[str]:
    """Returns a name for each part, longer if a short name is ambiguous."""
    whose = np.full(self._graph.num_ops, -1)
    for number, part in enumerate(parts):
      whose[part.ops] = number
    # Updates follow their variable, even in the scope of an optimizer.
    counts = ~(self._serves | self._in_optimizers) & (whose >= 0)
    names = [part.name for part in parts]
    found = layer_map.match(names, self._graph.names,
                            layers_lib.names(self._graph))
    wrong = counts & (found.patterns != whose) & (found.patterns >= 0)
    wrong &= ~found.only_default
    for number in {*whose[wrong].tolist(), *found.patterns[wrong].tolist()}:
      names[number] = parts[number].full_name
    return names

  @functools.cached_property
  def _parts(self) -> tuple[_Part, ...]:
    return tuple(self._with_rows(True))

  def _with_rows(self, within: bool) -> Iterator[_Part]:
    """Yields parts with a row; with `within`, those of spread layers, too."""
    layer, around = layers_lib.of(self._graph), ''
    outside: list[np.ndarray] = []
    last: list[_Part] = []
    while True:
      outside.append(layer.own)
      # Trackers of losses and a loss scale are variables, but scalar ones.
      used = [
          inner for inner in layer.layers
          if (self._weights[inner.ops] > updates.SCALAR_BYTES).any()
      ]
      if len(used) != 1 or not used[0].layers:
        break
      # The model itself has no row, because its layers have rows.
      inside = self._order.of(layer.layers)
      model = inside.index(used[0])
      beside = [
          _Part(inner.name, around + inner.name, inner.ops) for inner in inside
      ]
      yield from beside[:model]
      last = beside[model + 1:] + last
      layer, around = used[0], f'{around}{used[0].name}/'
    for inner in self._order.of(layer.layers):
      yield from self._inside(inner, '', around, within)
    yield from last
    rest = np.concatenate(outside)
    if rest.size:
      yield _Part(NO_LAYER, NO_LAYER, rest)

  def _inside(self, layer: layers_lib.Layer, name: str, around: str,
              within: bool) -> Iterator[_Part]:
    """Yields the parts of a layer that have a row."""
    name = f'{name}/{layer.name}' if name else layer.name
    ops = layer.ops
    if within and layer.layers and self._is_spread(ops):
      for inner in self._order.of(layer.layers):
        yield from self._inside(inner, name, around, within)
      ops = layer.own
    if ops.size:
      yield _Part(name, around + name, ops)

  def _is_spread(self, ops: np.ndarray) -> bool:
    """Whether much of the seconds or bytes of ops is not on one device."""
    for weights in (self._seconds, self._held):
      shares = self._by_device(ops, weights)
      if shares.sum() - shares.max() > _MATTERS * shares.sum():
        return True
    return False

  def _most(self, ops: np.ndarray, rounds: np.ndarray | None = None) -> int:
    """Returns the device with most seconds of ops or, if they are 0, bytes.

    Args:
      ops: int [K], ops.
      rounds: int [D], number of ops that would round on each device. Only the
        devices with the smallest number count.
    """
    shares = [
        self._by_device(ops, weights)
        for weights in (self._seconds, self._held, np.ones(self._graph.num_ops))
    ]
    if rounds is not None:
      counts = shares[-1] > 0
      counts &= rounds == rounds[counts].min()
      shares = [np.where(counts, own, 0) for own in shares]
    return int(next(own for own in shares if own.any()).argmax())

  def _by_device(self, ops: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns the sums of the weights [N] of ops by device, float64 [D]."""
    return np.bincount(self._placement.devices[ops], weights[ops],
                       len(self._labels))

  def _row(self, part: _Part) -> LayerRow:
    ops = part.ops
    counts = self._by_device(ops, np.ones(self._graph.num_ops))
    most = self._most(ops)
    sent = self._sent[np.isin(self._graph.tensor_ops[self._sent], ops)]
    return LayerRow(
        part.name, '', 1, self._labels[most], len(ops), {
            self._labels[device]: int(counts[device])
            for device in np.flatnonzero(counts) if device != most
        }, int(self._weights[ops].sum()), int(self._held[ops].sum()),
        float(self._seconds[ops].sum()), len(sent),
        int(self._graph.tensor_bytes[sent].sum()))

  @functools.cached_property
  def _sent(self) -> np.ndarray:
    """Returns the tensors that are sent, int [S], once per receiving device."""
    return self._placement.sent(self._graph)[0]


def _folded(found: Iterable[LayerRow], belongs: Callable[[LayerRow, LayerRow],
                                                         bool],
            least: int = 2) -> tuple[LayerRow, ...]:
  """Joins consecutive rows that belong together.

  Args:
    found: Rows.
    belongs: Whether a row and the next one belong together.
    least: Least number of rows that are joined.
  """
  runs: list[list[LayerRow]] = []
  for row in found:
    if runs and belongs(runs[-1][-1], row):
      runs[-1].append(row)
    else:
      runs.append([row])
  return tuple(
      row for run in runs
      for row in ([functools.reduce(LayerRow.with_next, run)] if len(run) >=
                  least else run))


def _shares_device(one: LayerRow, other: LayerRow) -> bool:
  return one.device == other.device and NO_LAYER not in (one.name, other.name)


def _is_same_kind(one: LayerRow, other: LayerRow) -> bool:
  """Whether two rows are layers of one kind, judged by their names."""
  return _shares_device(one, other) and (_NUMBERS.sub(
      '', one.name).rstrip('_') == _NUMBERS.sub('', other.name).rstrip('_'))
