"""Writes the study as a page, a table and a picture."""

from __future__ import annotations

import csv
import dataclasses
import io
import pathlib
from typing import Iterable, Sequence, TypeVar

import numpy as np

from benchmarks.fidelity import graphs
from benchmarks.fidelity import statistics
from benchmarks.fidelity import study
from gdp_grappler import files
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.reports import tables

_Item = TypeVar('_Item', study.Row, study.Ordered)
_PANELS = 4  # Largest number of panels side by side.
_COLOURS = {
    'single': 'black', 'expert': 'tab:green', 'layers': 'tab:olive',
    'modules': 'tab:cyan', 'metis': 'tab:purple', 'searched': 'tab:blue',
    'disturbed:': 'tab:orange', 'bad:': 'tab:red', 'placer': 'tab:pink'
}


def write(folder: pathlib.Path, rows: Sequence[study.Row],
          orders: Sequence[study.Ordered],
          cluster: cluster_lib.Cluster) -> None:
  """Writes README.md, placements.csv and fidelity.png.

  Without rows of placements there is no picture.
  """
  text = io.StringIO()
  columns = [field.name for field in dataclasses.fields(study.Row)]
  writer = csv.DictWriter(text, columns, lineterminator='\n')
  writer.writeheader()
  writer.writerows(map(dataclasses.asdict, rows))
  files.write_atomically(folder / 'placements.csv', text.getvalue())
  if _by_graph(rows):
    draw(folder / 'fidelity.png', rows)
  files.write_atomically(folder / 'README.md', _page(rows, orders, cluster))


def agreement(rows: Sequence[study.Row],
              real: str = 'measured') -> list[tuple[str, ...]]:
  """Returns a table with a head and a row per graph.

  Args:
    rows: Rows of all graphs.
    real: Origin of the real steps: 'measured' or 'emulated'.
  """
  lines: list[tuple[str, ...]] = [
      ('graph', 'placements', f'fastest to slowest ({real})', 'MAPE',
       f'simulated / {real}', 'Spearman', 'Kendall',
       f'the simulated best is {real}')
  ]
  for name, own in _by_graph(rows).items():
    a = statistics.agreement(np.array([r.simulated_s for r in own]),
                             np.array([r.measured_s for r in own]))
    times = [r.measured_s * 1e3 for r in own]
    lines.append((name, str(a.count),
                  f'{min(times):.0f} to {max(times):.0f} ms', f'{a.mape:.1%}',
                  f'{a.bias:.2f}', f'{a.spearman:.3f}', f'{a.kendall:.3f}',
                  f'number {a.rank_of_best}, {a.regret:.2f}x the best'))
  return lines


def _by_graph(rows: Sequence[study.Row]) -> dict[str, list[study.Row]]:
  return _grouped(row for row in rows if not row.problem)


def _grouped(items: Iterable[_Item]) -> dict[str, list[_Item]]:
  """Returns the items by graph."""
  result: dict[str, list[_Item]] = {}
  for item in items:
    result.setdefault(item.graph, []).append(item)
  return result


def _mean(orders: Sequence[study.Ordered], field: str) -> float:
  """Returns the geometric mean of a field."""
  return float(np.exp(np.mean([np.log(getattr(o, field)) for o in orders])))


def _orders(orders: Sequence[study.Ordered]) -> str:
  if not orders:
    return ('No placement of these graphs was predicted to gain '
            f'{study.ORDER_GAIN:.0%} or more by its order.')
  lines = [
      '| graph | placement | control edges | predicted step | measured '
      'step | spread |', '|---|---|---|---|---|---|'
  ]
  lines += [
      f'| {o.graph} | {o.label} | {o.edges} | {o.simulated:.2f}x | '
      f'{o.measured:.2f}x | {o.spread:.2f} |' for o in orders
  ]
  lines += [
      '', *(f'* {name}: predicted {_mean(own, "simulated"):.2f}x, measured '
            f'{_mean(own, "measured"):.2f}x (geometric means).'
            for name, own in _grouped(orders).items())
  ]
  lines += [
      '', 'On some graphs control edges cost more than they bring. So with '
      'fewer than two GPUs the plugin adds none, unless a user asks for an '
      'order.'
  ] * any(o.measured > 1 for o in orders)
  return '\n'.join(lines)


def _worst(rows: Sequence[study.Row]) -> str:
  lines = [
      '| graph | placement | simulated | measured | error |',
      '|---|---|---|---|---|'
  ]
  for own in _by_graph(rows).values():
    for row in sorted(
        own, key=lambda r: -abs(np.log(r.simulated_s / r.measured_s)))[:3]:
      lines.append(
          f'| {row.graph} | {row.label} | {row.simulated_s * 1e3:.1f} ms | '
          f'{row.measured_s * 1e3:.1f} ms | '
          f'{row.simulated_s / row.measured_s - 1:+.0%} |')
  return '\n'.join(lines)


def draw(path: pathlib.Path, rows: Sequence[study.Row],
         real: str = 'measured') -> None:
  """Draws simulated over real steps, a panel per graph.

  Args:
    path: File of the picture.
    rows: Rows of all graphs.
    real: Origin of the real steps: 'measured' or 'emulated'.
  """
  import matplotlib
  matplotlib.use('Agg')
  from matplotlib import pyplot
  by_graph = _by_graph(rows)
  lines = -(-len(by_graph) // _PANELS)
  columns = -(-len(by_graph) // lines)
  figure, axes = pyplot.subplots(lines, columns,
                                 figsize=(4.2 * columns, 4.2 * lines + .8),
                                 squeeze=False, layout='constrained')
  for axis in axes.flat[len(by_graph):]:
    axis.set_axis_off()
  families = {}
  for axis, (name, own) in zip(axes.flat, by_graph.items()):
    for family, colour in _COLOURS.items():
      chosen = [r for r in own if r.label.split()[0] == family]
      if chosen:
        families[family.strip(':')] = axis.scatter(
            [r.measured_s * 1e3 for r in chosen],
            [r.simulated_s * 1e3 for r in chosen], s=18, color=colour, alpha=.8)
    times = [t * 1e3 for r in own for t in (r.measured_s, r.simulated_s)]
    ends = [min(times) / 1.1, max(times) * 1.1]
    axis.plot(ends, ends, color='grey', linewidth=.8)
    axis.set(xscale='log', yscale='log', xlim=ends, ylim=ends, title=name,
             xlabel=f'{real} step (ms)', aspect='equal')
    ticks = [
        t for t in (1, 2, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000,
                    2000) if ends[0] <= t <= ends[1]
    ]
    for one in (axis.xaxis, axis.yaxis):
      one.set_ticks(ticks, [str(t) for t in ticks])
      one.set_minor_formatter(matplotlib.ticker.NullFormatter())
  for axis in axes[:, 0]:
    axis.set_ylabel('simulated step (ms)')
  figure.legend(families.values(), families.keys(), ncols=len(families),
                loc='outside lower center', frameon=False)
  figure.savefig(path, dpi=110)
  pyplot.close(figure)


def _page(rows: Sequence[study.Row], orders: Sequence[study.Ordered],
          cluster: cluster_lib.Cluster) -> str:
  links = ', '.join(f'{link.latency_s * 1e6:.0f} us + bytes / '
                    f'{link.bandwidth_bytes_per_s / 1e9:.2f} GB/s'
                    for link in cluster.links)
  copies = ', '.join(f'{d.copy_s * 1e6:.0f} us'
                     + (f' + bytes / {d.copy_bytes_per_s / 1e9:.2f} GB/s' if d.
                        copy_bytes_per_s else '') for d in cluster.devices)
  picture = ('![simulated over measured steps](fidelity.png)\n\n'
             if _by_graph(rows) else '')
  return f"""# How true the simulator is

How far is a simulated step from a measured one? `make fidelity` **simulates**
and **measures** steps of the same placements, on {cluster.num_devices}
TensorFlow servers pinned to one core each. Nothing was fitted to these
placements:

* A profile on these cores, of one op after the other, gives the seconds of ops.
* Messages between the servers give latency and bandwidth of the network.
* Steps on both cores at once show how much the cores slow each other down.

{tables.as_markdown(agreement(rows))}

{picture}[placements.csv](placements.csv) has every placement,
[results.json.gz](results.json.gz) everything. Figures of the cluster, as
measured:

* network: {links};
* compute that a transfer takes at each end: {copies};
* an empty step: {cluster.step_s * 1e3:.2f} ms.

## Where it is furthest off

{_worst(rows)}

## Order

Do control edges save what is predicted? These placements were predicted to save
{study.ORDER_GAIN:.0%} of the step or more. Figures are steps with control edges
over steps with TensorFlow's own order. `{graphs.FOR_ORDER[0]}` was made for
this purpose: many ops of one server are ready together with the first op of a
chain, whose other ops are on the other server.

{_orders(orders)}

## What this does not show

This study has no GPU. It tests how ops and transfers wait for each other, on
devices that run one op and one transfer at a time, with measured seconds of
ops. It does not test figures of GPU presets, copy engines, NVLink and PCIe, GPU
memory, or several hosts. [How the simulator
thinks](../../simulator.md#how-true-it-is) lists the other tests.
"""
