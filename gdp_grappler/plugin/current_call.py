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


# What Keras 3 calls the functions that do the steps of a call.
_OWN_STEP = (r'_?(?:one_step|multi_step|step)_on_(?:data|iterator)'
             r'(?:_distributed)?')
# And what tf_keras calls them, which may be names of a user's functions, too.
_STEP = rf'{_OWN_STEP}|(?:train|test|predict|step)_function|run_step'
# What TensorFlow makes of the name of a function.
_DECORATED = re.compile(
    r'(?:__(?:inference|forward)_|(?=__backward_))(.+?)(?:_\d+)*')
# What TensorFlow and Keras call functions that no user wrote, and what they are
# to a user. `{0}` is what the name holds.
_TITLES = (
    (_OWN_STEP, 'step of a Keras model'),
    ('initialize_variables', 'initial values of variables'),
    ('signature_wrapper(?:___call__)?', 'signature of a SavedModel'),
    ('signature_wrapper_(.+)', 'signature of a SavedModel ({0})'),
    # TensorFlow's wrapper of each function of a loaded model.
    ('restored_function_body', 'call of a SavedModel'),
    ('__call__', 'call of a model'),
    # Of a SavedModel of TensorFlow 1, and of another wrapped graph of
    # TensorFlow 1, the part that its outputs need.
    ('pruned', 'function of a TensorFlow 1 graph'),
    ('tf_graph', 'graph of a session'),
)
_BACKWARD = '__backward_'


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


def named(line: str, call: RunningCall | None, graph_id: str = '') -> str:
  """A line about a graph, with the user's name in place of the graph's.

  Args:
    line: Begins with the name that the graph had when the line was made.
    call: In which the graph runs.
    graph_id: What the runtime calls the graph now: another function may have
      had the same graph; '' if this is not known.
  """
  name, colon, rest = line.partition(': ')
  if not colon:
    return line
  now = undecorated(graph_id)
  title_now = title(name if now == graph_id else now, call)
  return f'{title_now}: {_quoting(rest, name, title_now)}'


def explained(text: str, graph_id: str, call: RunningCall | None) -> str:
  """The text of an error, with the user's name in place of the graph's.

  Args:
    text: May name the graph, in quotation marks.
    graph_id: What the runtime calls the graph.
    call: In which the graph runs.
  """
  return _quoting(text, undecorated(graph_id), title(graph_id, call))


def _quoting(text: str, name: str, title_of_it: str) -> str:
  shown = title_of_it if '"' in title_of_it else f'"{title_of_it}"'
  return text.replace(f'"{name}"', shown)


def undecorated(function: str) -> str:
  """'step' for '__inference_step_873', '__backward_step' for its gradients.

  Other names stay as they are.
  """
  match = _DECORATED.fullmatch(function)
  return match[1] if match else function


def title(name: str, call: RunningCall | None) -> str:
  """What a user calls a graph: 'fit of "model"' for a step of Keras.

  Args:
    name: What the runtime calls it, or without what TensorFlow adds to names.
    call: In which it runs.
  """
  plain = undecorated(name)
  if plain.startswith(_BACKWARD):
    forward = title(plain.removeprefix(_BACKWARD), call)
    return f'gradients of {forward}'
  if call is not None and re.fullmatch(_STEP, plain):
    return call.what
  for pattern, text in _TITLES:
    if match := re.fullmatch(pattern, plain):
      return text.format(*match.groups())
  return plain


def since(start: float) -> float:
  """When a user began to wait for what was begun at `start`."""
  call = current()
  waiting = None if call is None else call.waiting_since
  return start if waiting is None else min(waiting, start)
