"""Seconds of single kernels, as the stream of a device runs them.

A GPU runs small kernels faster than the host can launch them. So a step begins
with some large matrix products. They take longer than all launches, so that the
kernels after them run without a pause. The seconds of an op are the difference
of two steps, divided by n: the products with n copies of the op, and the
products alone.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.evaluation.calibrating import clocks
from gdp_grappler.evaluation.calibrating import inputs
from gdp_grappler.evaluation.calibrating import suite
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.processes import messages

# Least seconds of all products, so that all launches end before them.
_AHEAD_S = 2.5e-3
# Rows of the matrices, so large that a product takes longer than its launch.
_PRODUCT = 2048
_MOST_PRODUCTS = 500  # Largest number of products.
_PROBE = 8  # Number of products that are timed to find the time of one.
# Seconds that the copies of an op should fill, within the limits below.
_COPIES_S = 1e-3
# Least number of copies.
_LEAST_COPIES = 2
# Largest number of copies.
_MOST_COPIES = 40
# Ops with a longer estimate are not measured.
_LONGEST_S = .03
# Largest share of the memory for inputs and outputs of one op.
_MEMORY_SHARE = .2
# Sizes of an op type, as in `suite.Kind`.
_Sizes = Sequence[tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class _Size:
  """An op of one size, its work, and the number of its copies."""

  size: tuple[int, ...]
  flops: float
  io_bytes: float
  copies: int


def products_ahead(bench: clocks.Bench) -> int:
  """Number of products that keep the device busy while ops are launched.

  It is 0 on a synchronous device, where the launch of an op runs it.
  """
  if not bench.device.asynchronous:
    return 0
  with bench.built(probes) as (session, ends):
    return long_enough(session, ends, bench.deadline)


def probes(make: inputs.Inputs) -> list[Any]:
  """The last ops of two chains of products, for `long_enough`."""
  return [products(make, count).op for count in (1, 1 + _PROBE)]


def long_enough(session: Any, ends: Sequence[Any],
                deadline: deadlines.Deadline) -> int:
  """Number of products that take longer than all launches.

  Args:
    session: Session whose variables are initialized.
    ends: Result of `probes`.
    deadline: Deadline of the measurements.
  """
  short_s, long_s = clocks.quick([session.make_callable([end]) for end in ends],
                                 deadline)
  one_s = max((long_s - short_s) / _PROBE, 1e-7)
  return min(_MOST_PRODUCTS, 1 + int(_AHEAD_S / one_s))


def of_kind(bench: clocks.Bench, kind: suite.Kind, sizes: _Sizes,
            ahead: int) -> tuple[list[calibration_lib.Kernel], list[str]]:
  """Times some sizes of an op type.

  Args:
    bench: Devices and settings.
    kind: The op type.
    sizes: Some sizes of the op type.
    ahead: Result of `products_ahead`.

  Returns:
    The measured kernels, and a line with the reason for each other size.
  """
  chosen, left_out = _chosen(bench, kind, sizes)
  result = []
  for size, found in zip(chosen, _seconds(bench, kind, chosen, ahead)):
    if isinstance(found, str):
      left_out.append(f'{kind.op_type} {_label(size.size)}: {found}')
    else:
      result.append(
          calibration_lib.Kernel(kind.op_type, size.flops, size.io_bytes,
                                 found))
  return result, left_out


def _chosen(bench: clocks.Bench, kind: suite.Kind,
            sizes: _Sizes) -> tuple[list[_Size], list[str]]:
  """Sizes to measure, and a line with the reason for each other size.

  An op is measured if it has a kernel, fits into memory and is estimated to
  end soon.
  """
  graph, names = _described(bench, kind, sizes)
  chosen, left_out = [], []
  column = op_graph.DEVICE_TYPES.index(bench.kind)
  index = {name: i for i, name in enumerate(graph.names)}
  for size, name in zip(sizes, names):
    op = index[name]
    flops, io_bytes = float(graph.flops[op]), float(graph.io_bytes[op])
    estimate_s = float(roofline.Roofline().seconds([kind.op_type],
                                                   graph.flops[[op]],
                                                   graph.io_bytes[[op]],
                                                   (bench.device,))[0, 0])
    why = ('no kernel' if not graph.allowed_types[op, column] else
           'takes too long' if estimate_s > _LONGEST_S else
           'needs more memory' if io_bytes > _MEMORY_SHARE
           * bench.memory_bytes else '')
    if why:
      left_out.append(f'{kind.op_type} {_label(size)}: {why}')
      continue
    copies = int(min(_MOST_COPIES, max(_LEAST_COPIES, _COPIES_S / estimate_s)))
    chosen.append(_Size(size, flops, io_bytes, copies))
  return chosen, left_out


def _described(bench: clocks.Bench, kind: suite.Kind,
               sizes: _Sizes) -> tuple[op_graph.OpGraph, tuple[str, ...]]:
  """A graph with one op of each size, and the names of these ops."""
  names = []
  with tf.Graph().as_default() as graph:
    make = inputs.Inputs(bench.on_gpu)
    for size in sizes:
      make.begin()
      names.append(_op(kind.build(make, *size)()).name)
    graph_def = graph.as_graph_def(add_shapes=True)
  source = source_graph.SourceGraph('kernels', graph_def, (), tuple(names))
  return graph_def_io.read(source), tuple(names)


def _seconds(bench: clocks.Bench, kind: suite.Kind, chosen: Sequence[_Size],
             ahead: int) -> list[float | str]:
  """Seconds of one op of each size, or the reason why there are none."""
  if not chosen:
    return []

  def build(make: inputs.Inputs) -> tuple[list[Any], list[list[Any]]]:
    before = [products(make, ahead).op] if ahead else []
    return before, [_copies(make, kind, size, before) for size in chosen]

  with bench.built(build) as (session, (before, copies)):
    return [_of_one(bench, session, before, members) for members in copies]


def _of_one(bench: clocks.Bench, session: Any, before: Sequence[Any],
            copies: Sequence[Any]) -> float | str:
  """Seconds of one of some copies, or the reason why there are none."""
  if bench.deadline.passed:
    return calibration_lib.NO_TIME
  given = [*before, *(tensor.op for tensor in copies[0].inputs)]
  try:
    alone_s, with_s = clocks.quick([
        session.make_callable(given),
        session.make_callable([*given, *copies])
    ], bench.deadline)
  except tf.errors.OpError as error:
    return messages.cause(error)
  seconds = (with_s - alone_s) / len(copies)
  return seconds if seconds > 0 else 'lost in noise'


def _copies(make: inputs.Inputs, kind: suite.Kind, size: _Size,
            before: Sequence[Any]) -> list[Any]:
  """Copies of an op of one size, which wait for other ops."""
  make.begin()
  build = kind.build(make, *size.size)
  with tf.control_dependencies(before):
    return [_op(build()) for _ in range(size.copies)]


def products(make: inputs.Inputs, count: int, after: Sequence[Any] = ()) -> Any:
  """The last one of `count` products, each of which waits for the previous.

  The first product waits for the ops in `after`.
  """
  left, last = make.floats(_PRODUCT, _PRODUCT), make.floats(_PRODUCT, _PRODUCT)
  with tf.control_dependencies(after):
    for _ in range(count):
      last = make.ops.MatMul(a=left, b=last)
  return last


def _op(made: Any) -> Any:
  """The op of a result of `tf.raw_ops`."""
  while isinstance(made, (list, tuple)):
    made = made[0]
  return getattr(made, 'op', made)


def _label(size: tuple[int, ...]) -> str:
  return 'x'.join(map(str, size))
