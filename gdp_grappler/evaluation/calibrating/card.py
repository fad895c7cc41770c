"""The calibrated card: its name, its logical devices, and steps on it."""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Callable

import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import nvml
from gdp_grappler.evaluation.calibrating import clocks
from gdp_grappler.evaluation.calibrating import exchange
from gdp_grappler.evaluation.calibrating import host_figures
from gdp_grappler.evaluation.calibrating import kernel_times
from gdp_grappler.evaluation.calibrating import machine
from gdp_grappler.evaluation.calibrating import steps as steps_lib
from gdp_grappler.processes import messages

# The largest number of logical devices whose dispatch is timed in parallel.
_MOST_LOGICAL = 4
# Memory of each logical device but the first.
_SMALL_BYTES = 1 << 29
# The share of a card's memory that is used, because other programs may hold
# some of it.
_MEMORY_SHARE = .4
# Least memory of the first logical device.
_LEAST_BYTES = 1 << 30


class Measurer:
  """Measures steps on the card."""

  def __init__(self, setup: exchange.Setup) -> None:
    """Cuts the card into logical devices."""
    self._bench = _bench(setup)
    self._ahead: int | None = None

  def measure(self, step: steps_lib.CalibrationStep,
              budget_s: float | None) -> exchange.Answer | messages.Failure:
    """The result of one step, or the reason why it cannot be measured."""
    bench = dataclasses.replace(self._bench,
                                deadline=deadlines.within(budget_s))
    try:
      if self._ahead is None:
        self._ahead = kernel_times.products_ahead(bench)
      if step.kind is not None:
        kernels, left_out = kernel_times.of_kind(bench, step.kind, step.sizes,
                                                 self._ahead)
        late = any(why.endswith(calibration_lib.NO_TIME) for why in left_out)
        return exchange.Answer({}, tuple(kernels), tuple(left_out), not late)
      of_host: dict[str, Callable[[clocks.Bench], host_figures.Figures]] = {
          steps_lib.OPS: functools.partial(host_figures.ops, ahead=self._ahead),
          steps_lib.HOPS: host_figures.hops,
          steps_lib.LINKS: host_figures.links,
          steps_lib.TOGETHER: host_figures.side_by_side
      }
      found = of_host[step.name](bench)
      return exchange.Answer(
          {name: value for name, value in found.items() if value > 0},
          left_out=tuple(f'{name}: lost in noise'
                         for name, value in found.items() if value <= 0))
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
      return messages.Failure(messages.cause(error))


def describe(setup: exchange.Setup) -> exchange.Card | messages.Failure:
  """The card's own name and versions; a failure if there is no card.

  The function must not make TensorFlow initialize its devices, because the
  first session cuts the card into logical devices.
  """
  if setup.device_type == 'CPU':
    return exchange.Card(machine.cpu_model(), '', tf.__version__)
  cards = tf.config.list_physical_devices('GPU')
  if not cards:
    why = (
        'this TensorFlow is a build without CUDA'
        if not tf.test.is_built_with_cuda() else
        f'there is no GPU:{setup.number}, CUDA_VISIBLE_DEVICES hides all GPUs, '
        'or the driver or a CUDA library is missing'
        if os.environ.get('CUDA_VISIBLE_DEVICES') is not None else
        'the driver or a CUDA library is missing')
    return messages.Failure(f'TensorFlow {tf.__version__} sees no GPU here: '
                            f'{why}')
  details = tf.config.experimental.get_device_details(cards[0])
  return exchange.Card(
      details.get('device_name') or calibration_lib.UNNAMED,
      nvml.installed().driver(), tf.__version__)


def _bench(setup: exchange.Setup) -> clocks.Bench:
  """The bench: logical devices of the card, and assumed figures of the card."""
  cpu, gpu = (cluster_lib.local_name(kind, 0) for kind in ('CPU', 'GPU'))
  if setup.device_type == 'CPU':
    device, = local_devices.assumed([cpu]).devices
    # Ops run one after the other, so each has all cores.
    return clocks.Bench(
        dataclasses.replace(
            device, slots=1, peak_flops=device.peak_flops * device.slots,
            bandwidth_bytes_per_s=device.bandwidth_bytes_per_s * device.slots),
        2)
  _, device = local_devices.assumed([cpu, gpu]).devices
  logical = max(2, min(_MOST_LOGICAL, len(os.sched_getaffinity(0))))
  memory_bytes = max(_LEAST_BYTES, int(_MEMORY_SHARE * device.memory_bytes))
  count = len(tf.config.list_physical_devices('GPU'))
  return clocks.Bench(device, logical, min(count, 2), memory_bytes,
                      _SMALL_BYTES)
