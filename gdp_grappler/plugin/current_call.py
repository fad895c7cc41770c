"""The Keras function that a thread is running, for code that the pass calls.

`import tensorflow` loads this module in every program, so it imports next to
nothing.
"""

from __future__ import annotations

import re
import threading
from typing import Any, Callable, Protocol, TYPE_CHECKING

if TYPE_CHECKING:
  from gdp_grappler.graph import source_graph
  from gdp_grappler.plugin import library
  from gdp_grappler.plugin import outcome as outcome_lib
  from gdp_grappler.plugin import settings as settings_lib

  Optimize = Callable[[source_graph.SourceGraph, settings_lib.Settings],
                      outcome_lib.Outcome]


class RunningCall(Protocol):
  """A call of a Keras function.

  Attributes:
    is_placed: Functions called from here are to be instantiated once more,
      apart from those that run as they were.
    has_clusters: XLA compiles clusters of the ops of each device, in functions
      that are called from here.
    was_told: Whether the user has read a line about it.
    waiting_since: When the pass first got a graph of a step that is still
      waited for, by `time.perf_counter`; None if nobody waits.
  """

  is_placed: bool
  has_clusters: bool
  was_told: bool
  waiting_since: float | None

  @property
  def what(self) -> str:
    """For users: 'fit of "sequential"'."""

  def task(self, query: library.Query) -> Optimize | None:
    """Decides on a graph that is about to run, in this call only.

    Runs on the placer thread. None for what is done with any graph.
    """

  def decided(self) -> None:
    """What `task` gave has decided, and within its time."""


# What Keras 3 and tf_keras call the functions that do the steps of a call.
_STEP = (r'(?:(?:one_step|multi_step|_?one_step|step)_on_(?:data|iterator)'
         r'(?:_distributed)?|(?:train|test|predict|step)_function|run_step)')
_NAMED_STEP = re.compile(rf'{_STEP}: ')
# What TensorFlow makes of the name of a function.
_DECORATED = re.compile(r'__(?:inference|forward|backward)_(.+?)(?:_\d+)*')
# What TensorFlow calls each function of a SavedModel of TensorFlow 1, and of
# another wrapped graph of it, after it took the part that its outputs need.
_PRUNED = re.compile(r'^pruned(?=: )')


class Named:
  """A call that only gives its name: the pass treats its graphs as any."""

  has_clusters = False
  is_placed = False
  was_told = True
  waiting_since: float | None = None

  def __init__(self, what: str) -> None:
    self.what = what

  def task(self, query: library.Query) -> Optimize | None:
    """As of `RunningCall`: nothing special."""
    del query
    return None

  def decided(self) -> None:
    """As of `RunningCall`."""


class LeftAlone(Named):
  """A call of which the pass leaves all graphs alone, without a word."""

  # So nobody says what becomes of a function that a user has XLA compile.
  is_compiled_by_keras = True

  def task(self, query: library.Query) -> Optimize | None:
    """As of `RunningCall`."""
    del query
    from gdp_grappler.plugin import outcome
    return outcome.leave_alone


class _Local(threading.local):
  call: RunningCall | None = None


_local = _Local()


def current() -> RunningCall | None:
  """The innermost call that this thread is in."""
  return _local.call


def run(call: RunningCall, function: Callable[..., Any], *args: Any,
        **kwargs: Any) -> Any:
  """The result of a function, run as part of a call."""
  outer, _local.call = _local.call, call
  try:
    return function(*args, **kwargs)
  finally:
    _local.call = outer


def named(line: str, call: RunningCall | None) -> str:
  """A line about a graph, with what a user called in place of its name."""
  step = _NAMED_STEP.match(line)
  if call is None or step is None:
    return _PRUNED.sub('function of a TensorFlow 1 graph', line)
  return f'{call.what}: {line[step.end():]}'


def undecorated(function: str) -> str:
  """'step' for '__inference_step_873'; other names stay as they are."""
  match = _DECORATED.fullmatch(function)
  return match[1] if match else function


def title(name: str, call: RunningCall | None) -> str:
  """What a user calls a graph: 'fit of "model"' for a step of Keras.

  Args:
    name: What the runtime calls it, or without what TensorFlow adds to names.
    call: In which it runs.
  """
  plain = undecorated(name)
  if call is None or not re.fullmatch(_STEP, plain):
    return plain
  return call.what


def since(start: float) -> float:
  """When a user began to wait for what was begun at `start`."""
  call = current()
  waiting = None if call is None else call.waiting_since
  return start if waiting is None else min(waiting, start)
