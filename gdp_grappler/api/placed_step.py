"""The result of `place` and `load_plan`: a step with a device for each op."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import sys

import numpy as np

from gdp_grappler import extras
from gdp_grappler.api import applying
from gdp_grappler.api import graph_defs
from gdp_grappler.api import layering
from gdp_grappler.api import subjects
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.cluster import shortage
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation import price as price_lib
from gdp_grappler.evaluation.ordering import control_edges as edges_lib
from gdp_grappler.evaluation.ordering import order_names
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.legality import reasons as reasons_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.simple import single_device
from gdp_grappler.reports import device_work
from gdp_grappler.reports import model_explorer
from gdp_grappler.reports import tables
from gdp_grappler.reports import timeline
from gdp_grappler.reports import units


@dataclasses.dataclass(frozen=True, eq=False)
class PlacedStep:
  """A step with a device for each op. All seconds are simulated.

  Attributes:
    subject: The graph as it was read.
    step: N ops and the cluster; maybe with stricter rules than the subject.
    placement: Devices of the ops, and priorities if the step has an order.
    placed_by: Name of the placer, or of the plan file.
    order: The order that the caller wanted, one of `order_names.ORDERS`.
    order_is_given: Whether the order is from the plan file.
    chosen_by: Who chose the devices; None means `placed_by`.
    chosen: [N], who chose the device of each op; () if all are the same.
    layer_plan: The map of layers that chose the devices; () if there is none.
    alone_rounds: Whether the baseline on one device may round, too. False if
      only the map of layers allows rounding.
  """

  subject: subjects.Subject
  step: step_lib.Step
  placement: placement_lib.Placement
  placed_by: str
  order: str = order_names.FIFO
  order_is_given: bool = False
  chosen_by: str | None = None
  chosen: tuple[str, ...] = ()
  layer_plan: plan_lib.Layers = ()
  alone_rounds: bool = True

  @property
  def graph(self) -> op_graph.OpGraph:
    """The graph, with N ops."""
    return self.step.graph

  @functools.cached_property
  def devices(self) -> dict[str, str]:
    """Devices by op: 'GPU:0', or full names if tasks share the short one."""
    labels = self.placement.cluster.device_labels
    return {
        name: labels[device] for name, device in zip(
            self.graph.names, self.placement.devices.tolist())
    }

  @functools.cached_property
  def simulator(self) -> simulator_lib.Simulator:
    """The simulator that prices placements of the step."""
    return self.step.simulator()

  @functools.cached_property
  def fifo(self) -> evaluator_lib.Evaluation:
    """The price in FIFO order, and the memories that overflow."""
    return self.simulator.evaluate(self.graph, self._without_order)

  @functools.cached_property
  def fifo_schedule(self) -> schedule_lib.Schedule:
    """The simulated schedule in FIFO order."""
    return self.simulator.schedule(self.graph, self._without_order)

  @property
  def _without_order(self) -> placement_lib.Placement:
    return dataclasses.replace(self.placement, priorities=None)

  @functools.cached_property
  def step_time_s(self) -> float:
    """Seconds of the step, with the control edges of its order, if any."""
    if self.placement.priorities is None:
      return self.fifo.step_time_s
    return self.price().ordered_s

  @functools.cached_property
  def one_device(self) -> placement_lib.Placement:
    """The best placement on one device; a CPU only if no op needs a GPU."""
    graph = (self.graph if self.alone_rounds else self.graph.replace(
        may_round=False))
    problem = placer_lib.Problem(graph, self.step.cluster, self.simulator)
    return single_device.best_of_one(problem, alone=True)

  @property
  def where_alone(self) -> str:
    """Words for the best single device, which has most ops of `one_device`."""
    cluster = self.step.cluster
    most = int(np.bincount(self.one_device.devices).argmax())
    if most in cluster.accelerators:
      return 'one device'
    return f'the {cluster.devices[most].named_type}'

  @functools.cached_property
  def on_one_device(self) -> evaluator_lib.Evaluation:
    """The price of `one_device`."""
    return self.simulator.evaluate(self.graph, self.one_device)

  @functools.cached_property
  def reasons(self) -> reasons_lib.Reasons:
    """The reasons why ops may not have other devices."""
    cluster = self.step.cluster
    return reasons_lib.Reasons(
        self.graph, constraints.suitable_devices(self.graph, cluster),
        cluster.device_labels, self.step.source, self.chosen or
        reasons_lib.who_chose(self._chooser))

  @property
  def speedup(self) -> float:
    """How many times as fast as on `one_device`; infinite if no device fits."""
    alone, own_s = self.on_one_device, self.step_time_s
    if alone.valid and alone.step_time_s == own_s:
      return 1.  # Steps of a graph without costs take 0 seconds.
    return alone.step_time_s / own_s if alone.valid and own_s else float('inf')

  @property
  def fits(self) -> bool:
    """Whether no memory overflows."""
    return self.fifo.valid

  @property
  def warnings(self) -> tuple[str, ...]:
    """Lines about memories that overflow or nearly do, with advice."""
    if self.fits:
      said = shortage.nearly_full(self.step.cluster, self.fifo.peak_bytes)
      return (said,) if said else ()
    advice = constraints.advice_on_memory(self.graph, self.step.cluster)
    return (*(v.message for v in self.fifo.violations),
            *([advice] if advice else []))

  def price(self, order: str | None = None) -> price_lib.Price:
    """Returns the step times in both orders, the memory and the schedule.

    Args:
      order: Order of the memory and the schedule, one of `order_names.ORDERS`.
        None means the order of the plan.

    Raises:
      GdpError: there is no such order.
    """
    chosen = order_names.chosen(order, self.placement.priorities is not None)
    if chosen not in self._prices:
      self._prices[chosen] = price_lib.price(self.graph, self.placement,
                                             self.simulator, chosen)
    return self._prices[chosen]

  @functools.cached_property
  def _prices(self) -> dict[str, price_lib.Price]:
    """Prices by order. Each needs a search for control edges."""
    return {}

  def emulate(self, order: str | None = None) -> evaluator_lib.Evaluation:
    """Runs the step on emulated GPUs, by TensorFlow's own runtime.

    Args:
      order: See `price`.

    Raises:
      GdpError: there is no such order, or the emulation cannot be started.
    """
    from gdp_grappler.evaluation.emulation import emulator as emulator_lib
    with emulator_lib.Emulator(self.step.cluster,
                               self.step.cost_model) as emulator:
      return emulator.evaluate(self.graph, self.price(order).placement)

  @functools.cached_property
  def layers(self) -> tuple[layering.LayerRow, ...]:
    """The device, memory, time and cut of each layer, in the model's order."""
    return self._layering.rows

  @functools.cached_property
  def _layering(self) -> layering.Layering:
    return layering.Layering(self.graph, self.placement, self._schedule,
                             self.step.source)

  def layer_map(self) -> dict[str, str]:
    """Returns a map from layers to devices, which can be edited and used.

      layers = plan.layer_map()
      layers['embedding'] = 'CPU:0'
      plan = gdp_grappler.place(model, '2xP100', plan=layers)

    The device of a layer is that of most of its seconds. '*' has the device of
    the ops that are in no layer.
    """
    return self._layering.as_map()

  def summary(self, every_layer: bool = False) -> str:
    """Returns the step, its devices and its layers, joined or not, as text."""
    rows = self.layers if every_layer else self._layering.folded()
    return '\n'.join([
        *self._lines(),
        tables.text(self._rows()), '',
        tables.text(layering.table(rows), right=layering.NUMBERS),
        *(f'warning: {w}' for w in self.warnings)
    ])

  def to_json(self) -> str:
    """Returns the prices, the devices and the layers as JSON."""
    tensors, size = self.placement.cut(self.graph)
    alone = self.on_one_device
    return json.dumps(
        {
            'graph': self.graph.name,
            'fingerprint': self.graph.fingerprint,
            'cluster': self.step.cluster.name,
            'placed_by': self.placed_by,
            'simulated': True,
            'step_time_s': self.step_time_s,
            'fifo_step_time_s': self.fifo.step_time_s,
            'ordered': self.placement.priorities is not None,
            'on_one_device_s': alone.step_time_s if alone.valid else None,
            'fits': self.fits,
            'warnings': list(self.warnings),
            'ops': self.placement.counts(),
            'peak_bytes': list(self.fifo.peak_bytes),
            'cut': {'tensors': tensors, 'bytes': size},
            'layers': [dataclasses.asdict(row) for row in self.layers],
            'devices': self.devices,
        }, indent=1)

  def show(self) -> None:
    """Prints the summary."""
    sys.stdout.write(self.summary() + '\n')

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the plan, or the placed graph.

    Args:
      path: .json means a plan, which `load_plan`, `gdp` and the option read.
        .pb or .pbtxt means a GraphDef with devices and control edges.

    Raises:
      GdpError: the name has another ending, the graph has no TensorFlow ops, or
        the file cannot be written.
    """
    path = os.fspath(path)
    graph_defs.check_suffix(path)
    if path.endswith('.json'):
      plan_lib.save(path, self.graph, self.placement, self._chooser,
                    self.layer_plan)
      return
    order = self.control_edges
    edges = np.zeros((0, 2), int) if order is None else order.control_edges
    graph_defs.write(path, self.subject.whole(), self.graph, self.placement,
                     edges)

  @property
  def _chooser(self) -> str:
    return self.placed_by if self.chosen_by is None else self.chosen_by

  @functools.cached_property
  def control_edges(self) -> edges_lib.Order | None:
    """The control edges of the placed GraphDef; None without an order.

    Raises:
      GdpError: the step has no TensorFlow ops.
    """
    if self.placement.priorities is None:
      return None
    return graph_defs.order(self.graph,
                            self.subject.needed().graph, self.placement,
                            self.simulator)

  def apply(self, path: str | os.PathLike[str] | None = None) -> str:
    """Makes the plugin place this process' graphs by this plan from now on.

    Other keys of the option `gdp_placement` stay.

    Args:
      path: File for the plan. None means a file in the cache folder, which only
        this user can read. Old plans in that folder are removed.

    Returns:
      The path of the plan file.

    Raises:
      GdpError: the file cannot be written.
    """
    return applying.apply(self.graph, self.placement, self._chooser,
                          self.layer_plan, path)

  def write_trace(self, path: str | os.PathLike[str],
                  order: str | None = None) -> None:
    """Writes the simulated step as a Chrome trace.

    Args:
      path: The file.
      order: See `price`.

    Raises:
      GdpError: there is no such order, or the file cannot be written.
    """
    price = self.price(order)
    timeline.write_chrome_trace(path, self.graph, price.schedule,
                                price.placement)

  def write_tensorboard(self, folder: str | os.PathLike[str],
                        order: str | None = None) -> None:
    """Writes the graph with a colour per device, its summary and timeline.

    Args:
      folder: Folder that TensorBoard reads.
      order: See `price`.

    Raises:
      GdpError: there is no such order, Pillow is missing, or events cannot be
        written.
    """
    extras.require('A timeline for TensorBoard', 'PIL')
    from gdp_grappler.reports import tensorboard
    price = self.price(order)
    tensorboard.write(folder, self.graph, price.placement, price.schedule,
                      self._lines())

  def write_node_data(self, path: str | os.PathLike[str]) -> pathlib.Path:
    """Writes the devices as node data for Model Explorer, and the graph.

    Args:
      path: The file with the devices.

    Returns:
      The file with the graph in the same folder: 'a.graph.json' for 'a.json'.

    Raises:
      GdpError: a file cannot be written.
    """
    return model_explorer.write(path, self.graph, self.placement)

  def __repr__(self) -> str:
    return (f'<PlacedStep {self.graph.name}: '
            f'{units.count(self.graph.num_ops, "op")} on '
            f'{self.step.cluster.name} by {self.placed_by}, '
            f'{units.ms(self.step_time_s)} (simulated)>')

  def _repr_html_(self) -> str:
    folded = layering.table(self._layering.folded())
    return (tables.paragraph(self._lines()) + tables.as_html(self._rows())
            + tables.as_html(folded, right=layering.NUMBERS)
            + tables.paragraph([f'warning: {w}' for w in self.warnings]))

  def _lines(self) -> list[str]:
    tensors, size = self.placement.cut(self.graph)
    return [
        f'{self.graph.name}: {units.count(self.graph.num_ops, "op")} on '
        f'{self.step.cluster.name}, placed by {self.placed_by}',
        f'step {units.ms(self.step_time_s)} (simulated), {self._speedup()}',
        f'cut {units.count(tensors, "tensor")}, {units.amount(size, "B")}'
    ]

  def _speedup(self) -> str:
    alone = self.on_one_device
    if not alone.valid:
      return 'and no single device has the memory for it'
    return (f'{self.speedup:.2f}x as fast as on {self.where_alone} '
            f'({units.ms(alone.step_time_s)})')

  @property
  def _schedule(self) -> schedule_lib.Schedule:
    """The simulated schedule in the plan's order."""
    return (self.fifo_schedule
            if self.placement.priorities is None else self.price().schedule)

  def _rows(self) -> list[tuple[str, ...]]:
    return device_work.rows(self.placement, self._schedule)
