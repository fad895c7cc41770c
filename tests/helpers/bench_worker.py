"""`cell_worker` with placers that misbehave."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

import numpy as np

from gdp_grappler import cores
from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import registry
from placer_model.benchmark import cell_worker


class _First:
  """Places all ops on the first device."""

  def place(self, problem):
    """See `Placer`."""
    return placement_lib.from_groups(problem.graph,
                                     np.zeros(problem.graph.num_groups, int),
                                     problem.cluster)


class _AllOnGpu:
  """Places all ops on the last device."""

  def place(self, problem):
    """See `Placer`."""
    return placement_lib.Placement([problem.cluster.num_devices - 1]
                                   * problem.graph.num_ops, problem.cluster)


class _Torn(_First):
  """Places ops on two devices in turn, so that groups are split."""

  def place(self, problem):
    """See `Placer`."""
    return placement_lib.Placement(
        np.arange(problem.graph.num_ops) % 2, problem.cluster)


class _Searching(_First):
  """Prices three placements, each better than the previous one."""

  winner = 'the last one'

  def place(self, problem):
    """See `Placer`."""
    count = problem.graph.num_groups
    for devices in (np.arange(count) % 2, np.arange(count) * 2 // count,
                    np.zeros(count, int)):
      result = placement_lib.from_groups(problem.graph, devices,
                                         problem.cluster)
      problem.evaluator.evaluate(problem.graph, result)
    return result


def _crash():
  ctypes.string_at(0)


def _exit():
  os._exit(3)


def _raise():
  raise RuntimeError('two\nlines')


def _refuse():
  raise errors.GdpError('It needs the package nowhere.')


def _count():
  raise errors.GdpError(f'It may use {cores.own()} of the cores.')


def _give_up():
  raise errors.InfeasiblePlacementError('Nothing fits.')


_DOING = {
    'crash': _crash, 'exit': _exit, 'raise': _raise, 'refuse': _refuse,
    'count': _count, 'give_up': _give_up, 'hang': signal.pause
}


def _create(name):
  if name in _DOING:
    _DOING[name]()
  return {
      'first': _First, 'torn': _Torn, 'searching': _Searching,
      'all_on_gpu': _AllOnGpu
  }[name]()


def make(setup):
  """Calls `cell_worker.make` with the placers of this module."""
  registry.create = _create
  assert 'tensorflow' not in sys.modules
  return cell_worker.make(setup)
