"""The child process of `equality`: runs a program unplaced twice, then placed.

Usage: python -m benchmarks.equality.runner NAME OPTION

OPTION is the value of `gdp_placement` as JSON. Prints the fields of
`Comparison` as a line of JSON.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import plugin
from benchmarks.equality import base
from benchmarks.equality import fits
from benchmarks.equality import loops
from benchmarks.equality import sessions
from benchmarks.equality import training
from gdp_grappler.plugin import host
from gdp_grappler.plugin import library

# On import, each of these modules registers its programs.
KINDS = (fits, training, loops, sessions)
_DEVICES = 4  # Logical CPUs.
# Name of the function by which Keras makes weights and slots. The pass places
# it even if the step itself stays as it is.
_MAKER = 'initialize_variables'


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Numbers of a program with the option, compared with those without it.

  The difference of two tensors is the largest difference of two elements over
  the largest element. NaN equals NaN. NaN and a number differ infinitely.

  Attributes:
    placed_ops: Ops of the largest graph that the pass moved to another device.
    devices: Number of devices of that graph.
    moved_variables: Number of variables that end on another device.
    losses: Largest difference of the losses and metrics that users see.
    weights: Largest difference of a variable.
    noise: Largest difference of two runs without placement.
  """

  placed_ops: int
  devices: int
  moved_variables: int
  losses: float
  weights: float
  noise: float


def main() -> None:
  """Runs the program of the command line."""
  name, option = sys.argv[1:]
  plugin.cut_cpu(_DEVICES)
  print(json.dumps(dataclasses.asdict(compare(name, json.loads(option)))))


def compare(name: str, option: Any) -> Comparison:
  """Runs a program three times.

  Args:
    name: Name of the program.
    option: Value of `gdp_placement`.
  """
  run = base.PROGRAMS[name].run
  decisions = _listen()
  (losses, weights, _), again, placed = (
      _numbers(run, value) for value in (False, False, option))
  largest = max((d.devices for d in decisions), key=len, default=())
  return Comparison(
      sum(device != _home(device) for device in largest),
      len(set(largest)), placed[2], _difference(losses, placed[0]),
      _difference(weights, placed[1]),
      max(_difference(losses, again[0]), _difference(weights, again[1])))


def _listen() -> list[library.Decision]:
  """Returns a list to which each later decision about a step is appended."""
  decisions: list[library.Decision] = []
  answer = host.Host.answer

  def heard(self: host.Host, query: library.Query) -> library.Answer:
    result = answer(self, query)
    if isinstance(result, library.Decision) and _MAKER not in query.graph_id:
      decisions.append(result)
    return result

  host.Host.answer = heard  # type: ignore[method-assign]
  return decisions


def _numbers(run: Any, option: Any) -> tuple[list[Any], list[Any], int]:
  """Returns losses, variables, and the number of variables that moved."""
  tf.config.optimizer.set_experimental_options({'gdp_placement': option})
  base.keras.backend.clear_session()
  base.keras.utils.set_random_seed(1)
  seen, variables = run()
  plain = [_tensorflow(v) for v in variables]
  moved = sum(
      isinstance(v, tf.Variable) and v.device != _home(v.device) for v in plain)
  return ([np.asarray(v) for v in tf.nest.flatten(seen)],
          [np.asarray(v) for v in plain], moved)


def _tensorflow(variable: Any) -> Any:
  """Returns the `tf.Variable` of a variable of Keras 3."""
  value = getattr(variable, 'value', None)
  return value if isinstance(value, tf.Variable) else variable


def _home(device: str) -> str:
  """Returns the first device of the same type."""
  return device.rpartition(':')[0] + ':0'


def _difference(first: list[np.ndarray], second: list[np.ndarray]) -> float:
  return max((_of_one(a, b) for a, b in zip(first, second, strict=True)),
             default=0.)


def _of_one(first: np.ndarray, second: np.ndarray) -> float:
  if first.shape != second.shape:
    return float('inf')
  if not np.issubdtype(first.dtype, np.number):
    return 0. if (first == second).all() else float('inf')
  one, other = (a.astype(np.float64) for a in (first, second))
  same = (one == other) | (np.isnan(one) & np.isnan(other))
  if same.all():
    return 0.
  scale = np.abs(one[np.isfinite(one)]).max(initial=np.finfo(np.float32).tiny)
  apart = np.abs(one[~same] - other[~same]).max()
  return float('inf') if np.isnan(apart) else float(apart / scale)


if __name__ == '__main__':
  main()
