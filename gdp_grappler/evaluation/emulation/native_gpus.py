"""Bindings of the native library of emulated GPUs."""

from __future__ import annotations

import ctypes
import functools
from typing import Callable

import numpy as np

from gdp_grappler import native
from gdp_grappler.evaluation.emulation import emulated_graph
from gdp_grappler.evaluation.emulation import machine as machine_lib
from gdp_grappler.evaluation.emulation import timeline as timeline_lib

_INT64 = np.ctypeslib.ndpointer(np.int64, flags='C_CONTIGUOUS')
_FLOAT64 = np.ctypeslib.ndpointer(np.float64, flags='C_CONTIGUOUS')


class NativeGpus:
  """The emulated GPUs of a machine, which TensorFlow has from now on.

  There can be one object per process, because TensorFlow looks for devices
  once.
  """

  def __init__(self, machine: machine_lib.Machine):
    """Makes TensorFlow load the plugin.

    Raises:
      PluginError: the library is missing, or was built for another TensorFlow.
    """
    self._machine = machine
    self._library = _library()
    memory = np.array(machine.memory_bytes, np.int64)
    self._library.gdp_emulation_set_devices(memory, len(memory),
                                            machine.host_slots)
    from tensorflow.python.framework import load_library
    load_library.load_pluggable_device_library(str(native.EMULATED_GPUS_PATH))

  def set_costs(self, graph: emulated_graph.EmulatedGraph,
                timeless: bool = False) -> None:
    """Sets the costs of the next steps.

    Args:
      graph: N ops.
      timeless: Whether ops and copies take memory, but no time.
    """
    order = self._machine.order
    latency_s, bytes_per_s, channels = self._machine.links
    self._library.gdp_emulation_set_costs(
        native.f64(graph.seconds[:, order]),
        native.i64(graph.workspace_bytes[:, order]), graph.num_ops,
        native.f64(latency_s), native.f64(bytes_per_s), native.i64(channels),
        channels.shape[-1],
        int(channels.max()) + 1, float(not timeless))
    self._library.gdp_emulation_set_launches(native.i64(graph.launches),
                                             graph.num_ops)
    host_s = self._machine.host_times * float(not timeless)
    self._library.gdp_emulation_set_host_times(native.f64(host_s),
                                               self._machine.contexts)

  def run(self, step: Callable[[], object],
          num_ops: int) -> timeline_lib.Timeline:
    """Runs a step and returns its events.

    Args:
      step: Function that runs all ops and waits for their end.
      num_ops: Number of ops.
    """
    begin_ns = self._library.gdp_emulation_begin()
    step()
    records = np.zeros(
        (self._library.gdp_emulation_num_records(), timeline_lib.NUM_COLUMNS),
        np.int64)
    self._library.gdp_emulation_read(records, len(records))
    return timeline_lib.from_records(records, begin_ns, num_ops,
                                     self._machine.order)


@functools.cache
def _library() -> ctypes.CDLL:
  library = native.load(native.Library.EMULATED_GPUS)
  ints, floats, i64 = _INT64, _FLOAT64, ctypes.c_int64
  native.declare(
      library, {
          'gdp_emulation_set_devices': (None, [ints, i64, i64]),
          'gdp_emulation_set_costs': (None, [
              floats, ints, i64, floats, floats, ints, i64, i64, ctypes.c_double
          ]),
          'gdp_emulation_set_launches': (None, [ints, i64]),
          'gdp_emulation_set_host_times': (None, [floats, ints]),
          'gdp_emulation_begin': (i64, []),
          'gdp_emulation_num_records': (i64, []),
          'gdp_emulation_read': (None, [ints, i64]),
      })
  return library
