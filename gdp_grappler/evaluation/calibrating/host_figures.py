"""The host's time for ops that launch kernels, for other ops, and for hops.

A hop is the way of a small tensor to another device. Each step runs one
structure: a chain or a star of small ops, convolutions, or a chain that
alternates between two devices.
"""

from __future__ import annotations

import statistics
from typing import Any, Callable, Sequence

import tensorflow as tf

from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.cluster import device_figures
from gdp_grappler.evaluation.calibrating import clocks
from gdp_grappler.evaluation.calibrating import inputs
from gdp_grappler.evaluation.calibrating import kernel_times
from gdp_grappler.evaluation.calibrating import traces

_OPS = 1000  # Ops of a chain or a star.
_HOPS = 100  # Ops of a chain that alternates between two devices.
_COPIES = 200  # Ops whose outputs one thread copies to another device.
_SMALL = 16  # Elements of a small tensor.
_LARGE_BYTES = 1 << 26  # Bytes of a large tensor.
_LARGE_HOPS = 4  # Copies of the large tensor to another device.
Figures = dict[str, float]


def ops(bench: clocks.Bench, ahead: int) -> Figures:
  """Times ops that launch kernels, ops that launch none, and small kernels.

  If the trace has no kernels, `gap_s` is the assumed gap, at most the time of a
  small kernel.

  Args:
    bench: Devices and settings.
    ahead: Result of `kernel_times.products_ahead`.
  """
  device = [bench.name()]
  empty_s, *whole_s = _steps(
      bench, lambda make: [
          [make.ops.NoOp()],
          [_chain(make, device, _OPS, _launching)],
          _star(make, device[0], _OPS, _launching),
          [_chain(make, device, _OPS, _passing)],
          _star(make, device[0], _OPS, _passing),
          _convolutions(make),
      ])
  each = [max(0., s - empty_s) / _OPS for s in whole_s[:-1]]
  result = {
      'empty_step_s': empty_s, 'launching_op_s': sum(each[:2]) / 2,
      'other_op_s': sum(each[2:]) / 2,
      'cudnn_op_s': max(0., whole_s[-1] - empty_s) / _COPIES
  }
  if bench.device.asynchronous:
    small_s = _small_kernel_s(bench, ahead)
    result['small_kernel_s'] = small_s
    kernel_s = _traced_kernel_s(bench)
    result['gap_s'] = (min(small_s, device_figures.CARD_LAUNCH['gap_s'])
                       if kernel_s is None else max(0., small_s - kernel_s))
  return result


def side_by_side(bench: clocks.Bench) -> Figures:
  """Times launches on all logical devices of the card in parallel."""
  if bench.logical < 2:
    return {}
  empty_s, all_s = _steps(
      bench, lambda make: [[make.ops.NoOp()],
                           [
                               _chain(make, [bench.name(i)], _OPS, _launching)
                               for i in range(bench.logical)
                           ]])
  return {
      'side_by_side_op_s': max(0., all_s - empty_s) / (_OPS * bench.logical),
      'side_by_side_devices': float(bench.logical)
  }


def hops(bench: clocks.Bench) -> Figures:
  """Times hops from device to device, without and with kernels before them."""
  result = {}
  pairs = {'host_hop_s': bench.host}
  if bench.logical > 1:
    pairs['hop_s'] = bench.name(1)
  if bench.other_card:
    pairs['card_hop_s'] = bench.other_card
  for name, other in pairs.items():
    result[name] = _hop_s(bench, other, _launching)
    # Only the card computes products, which would take too long on the CPU.
    there = _launching if other == bench.host else None
    result[f'busy_{name}'] = _hop_s(bench, other, _behind(bench.busy_rows),
                                    there)
  if bench.logical > 1:
    result['copy_issue_s'] = _copy_issue_s(bench)
  return result


def links(bench: clocks.Bench) -> Figures:
  """Measures bytes per second of large tensors."""
  here, host = bench.name(), bench.host
  pairs = {
      'to_device_bytes_per_s': (host, here),
      'from_device_bytes_per_s': (here, host)
  }
  if bench.logical > 1:
    pairs['between_devices_bytes_per_s'] = here, bench.name(1)
  if bench.other_card:
    pairs['between_cards_bytes_per_s'] = here, bench.other_card
  rates = {n: _bytes_per_s(bench, *ends) for n, ends in pairs.items()}
  return {name: rate for name, rate in rates.items() if rate}


def _steps(bench: clocks.Bench, build: Callable[[inputs.Inputs],
                                                Sequence[Any]]) -> list[float]:
  """Seconds of steps of one graph; `build` returns lists of targets."""
  with bench.built(build) as (session, targets):
    return clocks.quick([session.make_callable(list(t)) for t in targets],
                        bench.deadline)


def _launching(make: inputs.Inputs, x: Any) -> Any:
  """The smallest op that launches a kernel."""
  return make.ops.AddV2(x=x, y=x)


def _passing(make: inputs.Inputs, x: Any) -> Any:
  """An op that launches no kernel."""
  return make.ops.Identity(input=x)


def _behind(rows: int) -> Callable[[inputs.Inputs, Any], Any]:
  """A step of a chain: a small op after a kernel longer than a launch."""

  def step(make: inputs.Inputs, x: Any) -> Any:
    # All products on a device share their matrices.
    left, right = make.floats(rows, rows), make.floats(rows, rows)
    make.begin()
    with tf.control_dependencies([x.op]):
      busy = make.ops.MatMul(a=left, b=right)
    with tf.control_dependencies([busy.op]):
      return _launching(make, x)

  return step


def _chain(make: inputs.Inputs, devices: Sequence[str], count: int,
           step: Callable[...,
                          Any], other: Callable[..., Any] | None = None) -> Any:
  """The last op of a chain of `count` steps, which alternate on the devices."""
  with make.on(devices[0]):
    last = make.floats(_SMALL)
  for number in range(count):
    turn = number % len(devices)
    with make.on(devices[turn]):
      last = (step if not turn or other is None else other)(make, last)
  return last.op


def _star(make: inputs.Inputs, device: str, count: int,
          step: Callable[..., Any]) -> list[Any]:
  """`count` ops that all read one tensor."""
  with tf.device(device):
    root = step(make, make.floats(_SMALL))
    return [step(make, root).op for _ in range(count)]


def _convolutions(make: inputs.Inputs) -> list[Any]:
  """Convolutions with very little work."""
  image = make.floats(*make.image(1, 8, 16))
  filters = make.floats(3, 3, 16, 16)
  return [
      make.ops.Conv2D(input=image, filter=filters, strides=make.strides(1),
                      padding='SAME', data_format=make.data_format).op
      for _ in range(_COPIES)
  ]


def _small_kernel_s(bench: clocks.Bench, ahead: int) -> float:
  """Seconds from one small kernel to the next on a busy stream."""

  def build(make: inputs.Inputs) -> list[list[Any]]:
    busy = kernel_times.products(make, ahead).op
    with tf.control_dependencies([busy]):
      small = _star(make, bench.name(), _HOPS, _launching)
    return [[busy], [busy, *small]]

  alone_s, with_s = _steps(bench, build)
  return max(0., with_s - alone_s) / (_HOPS + 1)


def _traced_kernel_s(bench: clocks.Bench) -> float | None:
  """Seconds of a small kernel in the trace; None if there is none."""

  def build(make: inputs.Inputs) -> Any:
    return _chain(make, [bench.name()], _HOPS, _launching)

  with bench.built(build) as (session, last):
    session.run(last)
    found = traces.kernel_seconds(session, [last], bench.name())
  return statistics.median(found.values()) if found else None


def _hop_s(bench: clocks.Bench, other: str, step: Callable[..., Any],
           there: Callable[..., Any] | None = None) -> float:
  """Seconds of a hop, without the ops at its ends."""

  def build(make: inputs.Inputs) -> list[list[Any]]:
    here = bench.name()
    return [[_chain(make, devices, _HOPS, step, there)]
            for devices in ([here, other], [here, here])]

  apart_s, together_s = _steps(bench, build)
  return max(0., apart_s - together_s) / _HOPS


def _copy_issue_s(bench: clocks.Bench) -> float:
  """Additional seconds of an op whose output goes to another device."""

  def build(make: inputs.Inputs) -> list[list[Any]]:
    with tf.device(bench.name()):
      root = _launching(make, make.floats(_SMALL))
      sent = [_launching(make, root) for _ in range(_COPIES)]
    with tf.device(bench.name(1)):
      read = [make.ops.Identity(input=x).op for x in sent]
    return [[x.op for x in sent], read]

  stay_s, go_s = _steps(bench, build)
  return max(0., go_s - stay_s) / _COPIES


def _bytes_per_s(bench: clocks.Bench, source: str, target: str) -> float | None:
  """Rate of a large tensor; None if noise hides how much longer it takes."""

  def trip(make: inputs.Inputs, elements: int) -> Any:
    with tf.device(source):
      value = make.floats(elements)
    last: list[Any] = []
    for _ in range(_LARGE_HOPS):
      # TensorFlow sends a tensor to a device only once, so make a new one.
      with tf.device(source), tf.control_dependencies(last):
        ball = make.ops.Identity(input=value)
      with tf.device(target):
        last = [make.ops.Identity(input=ball).op]
    return last[0]

  large = _LARGE_BYTES // 4
  short_s, long_s = _steps(
      bench, lambda make: [[trip(make, _SMALL)], [trip(make, large)]])
  least_s = _LARGE_BYTES * _LARGE_HOPS / calibration_lib.LARGEST
  if long_s - short_s < least_s:
    return None
  return _LARGE_BYTES * _LARGE_HOPS / (long_s - short_s)
