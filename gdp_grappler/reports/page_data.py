"""The data of a report page, as JSON: columns of ops and of simulated steps.

The data have all ops, and the page draws only the part that can be seen. Long
tables are cut, and a sentence tells the reader. Times are in microseconds. Axes
have a unit that suits the step time.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import critical_chain
from gdp_grappler.evaluation import price as price_lib
from gdp_grappler.evaluation import what_if
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.costs import op_families
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.legality import reasons as reasons_lib
from gdp_grappler.reports import colors
from gdp_grappler.reports import device_work

# Units of an axis, and the least step time for each, in microseconds.
_AXES = (('seconds', 1e6), ('milliseconds', 1e3), ('microseconds', 1.))
# Largest number of points of a curve of memory.
_MEMORY_POINTS = 1500
# Largest number of tensors in the table of the cut.
_MOST_CUTS = 100
# Why an op that a plan puts on a GPU is shown on a CPU.
_ON_HOST = ('; if a plan puts it on a GPU, a thread of the host computes it, '
            'because it takes and gives tensors in the memory of the host')
# Largest number of rows of the critical chain.
_MOST_STRETCHES = 400


@dataclasses.dataclass(frozen=True, eq=False)
class PageRun:
  """A plan, and its simulated step.

  Attributes:
    name: Name of the plan for readers.
    price: Step time, schedule and placement of the plan.
    layers: Rows of a table of the layers, without the head.
  """

  name: str
  price: price_lib.Price
  layers: Sequence[Sequence[str]] = ()


def page_data(graph: op_graph.OpGraph, runs: Sequence[PageRun],
              reasons: reasons_lib.Reasons, verdict: str) -> dict[str, Any]:
  """Returns all data of a page.

  Args:
    graph: N ops.
    runs: Plans of this graph on one cluster, in the order of the page.
    reasons: Reasons for the legal devices of this graph on the cluster.
    verdict: First sentence of the page.
  """
  cluster = runs[0].price.placement.cluster
  return {
      'graph': graph.name, 'cluster': cluster.name, 'verdict': verdict,
      'axis': _axis(max(run.price.schedule.step_time_s for run in runs) * 1e6
                   ), 'devices': list(cluster.device_labels),
      'deviceColors': [colors.of_device(i) for i in range(cluster.num_devices)],
      'transferColor': colors.TRANSFER, 'families': list(colors.FAMILIES),
      'familyColors': list(colors.FAMILIES.values()),
      'pools': [{'name': name, 'bytes': size} for name, size in zip(
          device_work.pool_names(cluster), cluster.pool_bytes.tolist())],
      'ops': _ops(graph, reasons), 'runs': [_run(graph, run) for run in runs]
  }


def _axis(step_us: float) -> dict[str, Any]:
  """Returns the unit of axes for a step, and the microseconds of the unit."""
  unit, unit_us = next((axis for axis in _AXES if step_us >= axis[1]),
                       _AXES[-1])
  return {'unit': unit, 'us': unit_us}


def _ops(graph: op_graph.OpGraph,
         reasons: reasons_lib.Reasons) -> dict[str, Any]:
  """Columns [N] of ops. Types, families and reasons are indices of names."""
  types = {name: i for i, name in enumerate(dict.fromkeys(graph.op_types))}
  families = list(colors.FAMILIES)
  family_of = [families.index(op_families.family(t).name) for t in types]
  texts: dict[str, int] = {}
  why = []
  for op, leaves in enumerate(op_details.leave_gpus(graph).tolist()):
    text = reasons.of(op).text + (_ON_HOST if leaves else '')
    why.append(texts.setdefault(text, len(texts)))
  type_of = [types[t] for t in graph.op_types]
  return {
      'names': [graph.label(op) for op in range(graph.num_ops)],
      'types': list(types), 'type': type_of,
      'family': [family_of[t] for t in type_of],
      'bytes': graph.output_bytes.tolist(),
      'variables': graph.param_bytes.tolist(), 'whys': list(texts), 'why': why
  }


def _run(graph: op_graph.OpGraph, run: PageRun) -> dict[str, Any]:
  price = run.price
  schedule, placement = price.schedule, price.placement
  chain = critical_chain.critical_chain(price.graph, placement, schedule)
  tensors, size = placement.cut(graph)
  return {
      'name': run.name, 'stepUs': schedule.step_time_s * 1e6, 'warnings': [
          v.message for v in price.evaluation.violations
      ], 'peaks': list(price.evaluation.peak_bytes), 'layers': list(run.layers),
      'cut': {'tensors': tensors,
              'bytes': size}, 'device': schedule.devices.tolist(),
      'slot': schedule.slots.tolist(), 'start': _us(schedule.start_s),
      'duration': _us(schedule.end_s - schedule.start_s),
      'transfers': _transfers(graph, schedule),
      'memory': _memory(schedule, len(placement.cluster.pool_bytes)),
      'work': _work(placement, schedule),
      'critical': sorted(p.index for p in chain if not p.is_transfer
                        ), **_chain_table(_chain_parts(schedule, chain)),
      **_cut_table(what_if.cuts(graph, placement))
  }


def _chain_table(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
  longest = sorted(rows, key=lambda row: -(row['us'] + row['gapUs']))
  kept = {id(row) for row in longest[:_MOST_STRETCHES]}
  return {
      'chain': [row for row in rows if id(row) in kept],
      'chainPart': _part(_MOST_STRETCHES, 'longest', len(rows), 'rows')
  }


def _cut_table(cuts: Sequence[what_if.Cut]) -> dict[str, Any]:
  return {
      'cuts': [_cut(cut) for cut in cuts[:_MOST_CUTS]],
      'cutsPart': _part(_MOST_CUTS, 'largest', len(cuts), 'tensors')
  }


def _part(most: int, which: str, count: int, what: str) -> str:
  """Returns a sentence about a table that is cut; '' for a complete table."""
  if count <= most:
    return ''
  return f'The table has only the {most} {which} of {count} {what}.'


def _cut(cut: what_if.Cut) -> dict[str, Any]:
  return {
      'op': cut.op, 'source': cut.source, 'target': cut.target,
      'bytes': cut.size_bytes, 'us': round(cut.seconds * 1e6, 2)
  }


def _transfers(graph: op_graph.OpGraph,
               schedule: schedule_lib.Schedule) -> dict[str, list[Any]]:
  """Columns of transfers with bytes; messages are left out."""
  tensors = schedule.transfer_tensors
  rows = np.flatnonzero(tensors >= 0)
  rows = rows[graph.tensor_bytes[tensors[rows]] > 0]
  start_s = schedule.transfer_start_s[rows]
  end_s = schedule.transfer_end_s[rows]
  return {
      'op': schedule.transfer_ops[rows].tolist(),
      'source': schedule.transfer_sources[rows].tolist(),
      'target': schedule.transfer_targets[rows].tolist(),
      'bytes': graph.tensor_bytes[tensors[rows]].tolist(),
      'start': _us(start_s), 'duration': _us(end_s - start_s)
  }


def _memory(schedule: schedule_lib.Schedule,
            pools: int) -> list[dict[str, list[Any]]]:
  """Returns a curve of memory for each pool, with the peak of each interval."""
  step_s = schedule.step_time_s or 1.
  result = []
  for pool in range(pools):
    own = schedule.memory_pools == pool
    times, sizes = schedule.memory_s[own], schedule.memory_bytes[own]
    if len(times) > _MEMORY_POINTS:
      stretch = np.minimum((times / step_s * _MEMORY_POINTS).astype(int),
                           _MEMORY_POINTS - 1)
      first = np.flatnonzero(np.diff(stretch, prepend=-1))
      times, sizes = times[first], np.maximum.reduceat(sizes, first)
    result.append({
        'at': _us(np.append(times, step_s)),
        'bytes': np.append(sizes, sizes[-1:]).tolist()
    })
  return result


def _work(placement: placement_lib.Placement,
          schedule: schedule_lib.Schedule) -> dict[str, list[Any]]:
  """Returns the time of ops, of copying and of neither for each device."""
  work = device_work.of_schedule(placement, schedule)
  slots = np.array([device.slots for device in placement.cluster.devices])
  waiting = np.maximum(schedule.step_time_s - (work.op_s + work.copy_s) / slots,
                       0)
  return {
      'computing': _us(work.op_s / slots), 'copying': _us(work.copy_s / slots),
      'waiting': _us(waiting)
  }


def _chain_parts(
    schedule: schedule_lib.Schedule,
    chain: Sequence[critical_chain.ChainPart]) -> list[dict[str, Any]]:
  """Returns the critical chain. Consecutive ops of a device are one part."""
  rows: list[dict[str, Any]] = []
  for part in chain:
    index = part.index
    if part.is_transfer:
      where = [
          int(schedule.transfer_sources[index]),
          int(schedule.transfer_targets[index])
      ]
      op = int(schedule.transfer_ops[index])
    else:
      where, op = [int(schedule.devices[index])], index
    busy_us, gap_us = (part.end_s - part.start_s) * 1e6, part.gap_s * 1e6
    last = rows[-1] if rows else None
    if last is not None and last['where'] == where and not part.is_transfer:
      last['ops'] += 1
      last['us'] += busy_us
      last['gapUs'] += gap_us
      last['last'] = op
    else:
      rows.append({
          'where': where, 'first': op, 'last': op, 'ops': 1, 'us': busy_us,
          'gapUs': gap_us, 'startUs': part.start_s * 1e6,
          'waitedFor': part.waited_for
      })
  return rows


def _us(seconds: np.ndarray) -> list[float]:
  return np.round(seconds * 1e6, 2).tolist()
