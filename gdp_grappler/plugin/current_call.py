"""The Keras function that a thread is running, for code that the pass calls.

`import tensorflow` loads this module in every program, so it imports little.
"""

from __future__ import annotations

import contextvars
import re
from typing import Any, Callable, TYPE_CHECKING

if TYPE_CHECKING:
  from gdp_grappler.graph import source_graph
  from gdp_grappler.plugin import library
  from gdp_grappler.plugin import outcome as outcome_lib
  from gdp_grappler.plugin import settings as settings_lib

  Optimize = Callable[[source_graph.SourceGraph, settings_lib.Settings],
                      outcome_lib.Outcome]


class RunningCall:
  """A call of a Keras function, whose graphs are placed in the usual way.

  Attributes:
    is_placed: Whether functions of this call run by a plan. They are then
      instantiated apart from the functions that run as they were.
    has_clusters: Whether XLA compiles clusters of the ops of each device, in
      functions that run by a plan.
    was_told: Whether the user got a line about the call.
    waiting_since: Moment at which the pass first got a graph of the step that
      the user waits for, by `time.perf_counter`; None if nobody waits.
    what: The user's name of the call, such as 'fit of "sequential"'.
  """

  is_placed = False
  has_clusters = False
  was_told = False
  waiting_since: float | None = None

  def __init__(self, what: str) -> None:
    self.what = what

  def task(self, query: library.Query) -> Optimize | None:
    """Returns a function that decides on a graph, for this call only.

    The placer thread runs the function. None means the usual decision.
    """
    del query
    return None

  def decided(self) -> None:
    """Notes that the function of `task` has decided within its time limit."""


# Keras 3's names of the functions that do the steps of a call.
_OWN_STEP = (r'_?(?:one_step|multi_step|step)_on_(?:data|iterator)'
             r'(?:_distributed)?')
# These names and those of tf_keras. A function of the user may also have a name
# of the second kind.
_STEP = rf'{_OWN_STEP}|(?:train|test|predict|step)_function|run_step'
# The name of a function in a graph: TensorFlow adds a prefix and a number. If
# the function computes gradients, TensorFlow has added `_BACKWARD` and another
# number to the name before.
_DECORATED = re.compile(r'__(?:inference|forward)_(.+)_\d+')
# Names of functions that TensorFlow and Keras wrote, and descriptions of them
# for users. `{0}` is the group of the pattern.
_TITLES = (
    (_OWN_STEP, 'step of a Keras model'),
    ('initialize_variables', 'initial values of variables'),
    # TensorFlow's functions that write and read the weights of a SavedModel.
    # TensorFlow also runs both when it loads a SavedModel.
    ('(?:tf_function_save|save_fn)', 'saving or loading of a model'),
    ('(?:tf_function_restore|restore_fn)', 'saving or loading of a model'),
    ('signature_wrapper(?:___call__)?', 'signature of a SavedModel'),
    ('signature_wrapper_(.+)', 'signature of a SavedModel ({0})'),
    # TensorFlow's wrapper of each function of a loaded model.
    ('restored_function_body', 'call of a SavedModel'),
    ('__call__', 'call of a model'),
    # TensorFlow wraps a graph of TensorFlow 1, such as a SavedModel, and prunes
    # the graph to the ops that its outputs need.
    ('pruned', 'function of a TensorFlow 1 graph'),
    ('tf_graph', 'graph of a session'),
)
_BACKWARD = '__backward_'


class Named(RunningCall):
  """A call that only gives its graphs a name. The pass places them as usual."""

  was_told = True


class LeftAlone(Named):
  """A call whose graphs stay as they were, without a line for the user."""

  # Suppresses the line about functions that a user compiles by XLA.
  is_compiled_by_keras = True

  def task(self, query: library.Query) -> Optimize | None:
    """See `RunningCall`."""
    del query
    from gdp_grappler.plugin import outcome
    return outcome.leave_alone


_call = contextvars.ContextVar[RunningCall | None]('call', default=None)


def current() -> RunningCall | None:
  """Returns the innermost call that this thread runs; None without one."""
  return _call.get()


def run(call: RunningCall, function: Callable[..., Any], *args: Any,
        **kwargs: Any) -> Any:
  """Runs a function as part of a call, and returns its result."""
  token = _call.set(call)
  try:
    return function(*args, **kwargs)
  finally:
    _call.reset(token)


def named(line: str, call: RunningCall | None, graph_id: str = '') -> str:
  """Returns a line about a graph, with the user's name of the graph.

  Args:
    line: The line. It begins with the name that the graph had when the line was
      made. Another function with an equal graph may have had this name.
    call: The call in which the graph runs.
    graph_id: The runtime's present name of the graph; '' if it is not known.
  """
  name, colon, rest = line.partition(': ')
  if not colon:
    return line
  now = undecorated(graph_id)
  title_now = title(name if now == graph_id else now, call)
  return f'{title_now}: {_quoting(rest, name, title_now)}'


def explained(text: str, graph_id: str, call: RunningCall | None) -> str:
  """Returns the text of an error, with the user's name of the graph.

  Args:
    text: The text, which may contain the graph's name in quotation marks.
    graph_id: The runtime's name of the graph.
    call: The call in which the graph runs.
  """
  return _quoting(text, undecorated(graph_id), title(graph_id, call))


def _quoting(text: str, name: str, title_of_it: str) -> str:
  shown = title_of_it if '"' in title_of_it else f'"{title_of_it}"'
  return text.replace(f'"{name}"', shown)


def undecorated(function: str) -> str:
  """Returns the name of a function without TensorFlow's prefix and number.

  Examples: 'step' for '__inference_step_873', '__backward_step' for its
  gradients, '__inference___backward_step_78_220'. Other names stay as they are.
  """
  match = _DECORATED.fullmatch(function)
  if not match:
    return function
  name, gradients = match[1], ''
  while name.startswith(_BACKWARD):
    name = re.sub(r'_\d+$', '', name.removeprefix(_BACKWARD))
    gradients += _BACKWARD
  return gradients + name


def title(name: str, call: RunningCall | None) -> str:
  """Returns the user's name of a graph: 'fit of "model"' for a step of Keras.

  Args:
    name: The runtime's name of the graph, or the result of `undecorated`.
    call: The call in which the graph runs.
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
  """Returns the moment at which the user began to wait for work.

  Args:
    start: Moment at which this work began.
  """
  call = current()
  waiting = None if call is None else call.waiting_since
  return start if waiting is None else min(waiting, start)
