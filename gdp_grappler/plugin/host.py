"""Answers the queries of the pass.

The class `Host` looks a graph up in the cache, captures the graph if the user
wants that, and runs the placer. If anything fails, the graph stays as it was.
"""

from __future__ import annotations

import atexit
import collections
import dataclasses
import functools
import threading
import time
from typing import Any, Callable, TYPE_CHECKING

from gdp_grappler import deadlines
from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler.graph import name_parts
from gdp_grappler.placers.policy import eager_thread
from gdp_grappler.plugin import asked_devices
from gdp_grappler.plugin import batches
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import garbage
from gdp_grappler.plugin import interrupts
from gdp_grappler.plugin import library
from gdp_grappler.plugin import loading
from gdp_grappler.plugin import notices
from gdp_grappler.plugin import placer_thread
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.sharding import choice

if TYPE_CHECKING:
  # Imported in functions, when the first graph arrives.
  from gdp_grappler.graph import source_graph
  from gdp_grappler.graph.sources import wishes as wishes_lib
  from gdp_grappler.plugin import outcome as outcome_lib

_CACHE_SIZE = 64  # Answers that are kept.
_UNKNOWN_WISHES = ('; devices that its program asked for by tf.device are not '
                   'known here: gdp_grappler.pin keeps ops on a device')
_thread = placer_thread.PlacerThread()


def connect() -> None:
  """Registers the host with the pass, once per process.

  Raises:
    PluginError: the native library is missing or was built for another
      TensorFlow.
  """
  _connect()


@functools.cache
def _connect() -> None:
  library.register(Host(_optimize, recall=_recall).answer)
  # A callback into an interpreter that shuts down would hang.
  atexit.register(library.unregister)


def _optimize(source: source_graph.SourceGraph,
              settings: settings_lib.Settings) -> outcome_lib.Outcome:
  # Imported on the placer thread when the first graph arrives.
  with deadlines.LOADING.running():
    from gdp_grappler.plugin import decisions
    from gdp_grappler.plugin import server_link_timing
  server_link_timing.time_once(source.devices, settings)
  return decisions.optimize(source, settings)


def _recall(query: library.Query,
            settings: settings_lib.Settings) -> outcome_lib.Outcome | None:
  """Returns the decision of an earlier run about a graph; None without one."""
  with deadlines.LOADING.running():
    from gdp_grappler.plugin import decisions
    from gdp_grappler.plugin import server_link_timing
  server_link_timing.time_once(query.devices, settings)
  return decisions.recall(
      decisions.key(decisions.fingerprint(query), query.devices, settings),
      query.devices)


def _excused_s() -> float:
  """Returns the seconds of loading, which no graph's time budget includes."""
  return deadlines.LOADING.seconds


@dataclasses.dataclass(frozen=True)
class _Kept:
  """An answer, and the line about it.

  Attributes:
    decision: The decision; None if the graph stays as it was.
    message: The line; '' for none.
    topic: See `outcome.Outcome`.
  """

  decision: library.Decision | None = None
  message: str = ''
  topic: str = ''

  @classmethod
  def of(cls, outcome: outcome_lib.Outcome) -> _Kept:
    """Returns the answer that an outcome gives."""
    if outcome.devices is None:
      return cls(None, outcome.message, outcome.topic)
    return cls(
        library.Decision(tuple(outcome.devices), tuple(outcome.control_edges),
                         outcome.graph), outcome.message, outcome.topic)


class Host:
  """Answers every query of the pass; raises only exceptions of the program."""

  def __init__(
      self,
      optimize: Callable[[source_graph.SourceGraph, settings_lib.Settings],
                         outcome_lib.Outcome],
      thread: placer_thread.PlacerThread = _thread,
      recall: Callable[[library.Query, settings_lib.Settings],
                       outcome_lib.Outcome | None] | None = None
  ) -> None:
    """Creates a host with an empty cache.

    Args:
      optimize: Function that decides on a graph, such as
        `decisions.optimize`.
      thread: Thread that runs `optimize` and `recall`.
      recall: Function that returns the decision of an earlier process about a
        graph, or None. Without this function there are no such decisions.
    """
    self._optimize = optimize
    self._thread = thread
    self._recall = recall
    self._cache = _Cache(_CACHE_SIZE)

  def answer(self, query: library.Query) -> library.Answer:
    """Returns the decision about a graph, a request for the graph, or None.

    None means that the graph stays as it was.
    """
    if eager_thread.is_current() or loading.is_current():
      return None
    start = time.perf_counter()
    wishes, query = _with_wishes(query)
    directory = environment.capture_directory()
    call = current_call.current()
    task = call.task(query) if call else None
    if call and task and call.waiting_since is None:
      call.waiting_since = start
    key = (query.fingerprint, query.settings, query.feeds, query.fetches,
           query.devices, query.may_place, directory, batches.current())
    if query.graph is None:
      return library.NeedsGraph if task else self._known(query, key, start)
    try:
      settings = _settings(query)
      # A garbage collection would lengthen the time that the program waits.
      with garbage.uncollected():
        kept = self._thread.run(
            functools.partial(self._serve, query, settings, wishes, key, call,
                              task), settings.time_budget_s, _excused_s)
    except (KeyboardInterrupt, interrupts.Interruption):
      raise
    except BaseException as error:
      if interrupts.is_of_program(error):
        raise
      notices.warn_once(_explain(error, query, start))
      _note_that_told(True)
      return None
    if call and task:
      call.decided()
    _say(kept, start, query)
    return kept.decision

  def _known(self, query: library.Query, key: tuple[Any, ...],
             start: float) -> library.Answer:
    how, kept = ', as decided earlier in this run', self._cache.get(key)
    if kept is None:
      outcome = self._recalled(query)
      if outcome is None:
        return library.NeedsGraph
      how, kept = '', _Kept.of(outcome)
      self._cache[key] = kept
    _say(kept, start, query, how)
    return kept.decision

  def _recalled(self, query: library.Query) -> outcome_lib.Outcome | None:
    """Returns the decision of an earlier run; None if the graph is needed.

    A graph that has to be captured is always needed.
    """
    if (self._recall is None or environment.capture_directory() or
        not query.may_place):
      return None
    settings = _settings(query)
    try:
      return self._thread.run(functools.partial(self._recall, query, settings),
                              settings.time_budget_s, _excused_s)
    except Exception:
      return None  # Placing the graph fails in the same way, and reports it.

  def _serve(self, query: library.Query, settings: settings_lib.Settings,
             wishes: wishes_lib.Wishes, key: tuple[Any, ...],
             call: current_call.RunningCall | None,
             optimize: current_call.Optimize | None) -> _Kept:
    """Returns the decision and the line to print. Runs on the placer thread.

    The cache gets the answer even if the answer is too late for this query. The
    cache does not get an answer of the argument `optimize`, because such an
    answer is for this call only.
    """
    source = _source_graph(query, wishes, settings)
    directory = environment.capture_directory()
    if directory:
      _capture(source, query, directory, call)
    kept = _Kept()
    if query.may_place:
      source = asked_devices.with_feasible_requests(source, settings)
      outcome = (optimize or self._optimize)(source, settings)
      kept = _Kept.of(outcome)
      _check(kept.decision, source, query)
      if kept.message and kept.decision and not wishes.is_known:
        kept = dataclasses.replace(kept,
                                   message=f'{kept.message}{_UNKNOWN_WISHES}')
    if optimize is None:
      self._cache[key] = kept
    return kept


def _settings(query: library.Query) -> settings_lib.Settings:
  settings = (settings_lib.from_json(query.settings)
              if query.settings else settings_lib.Settings())
  if settings.batch_size is None:
    settings = dataclasses.replace(settings, batch_size=batches.current())
  return settings


def _with_wishes(
    query: library.Query) -> tuple[wishes_lib.Wishes, library.Query]:
  """Returns the program's requests by tf.device, and a query to look up.

  TensorFlow's placer may give two graphs the same devices, although the program
  requested the devices of only one of them. So the fingerprint of the returned
  query includes the requests.
  """
  from gdp_grappler.graph.sources import wishes as wishes_lib
  if query.settings and not settings_lib.from_json(query.settings).keeps_asked:
    return wishes_lib.NONE, query
  wishes = asked_devices.of(query.graph_id)
  if not wishes.digest:
    return wishes, query
  return wishes, dataclasses.replace(
      query, fingerprint=f'{query.fingerprint}-{wishes.digest}')


def _say(kept: _Kept, start: float, query: library.Query,
         how: str = '') -> None:
  call, topic = current_call.current(), kept.topic
  if topic and call is not None:
    # Each model has a line of its own.
    topic += call.what.partition(' of ')[2]
  notices.say_of(
      topic,
      current_call.named(_timed(kept.message, start, how), call,
                         query.graph_id))
  _note_that_told(bool(kept.message))


def _note_that_told(told: bool) -> None:
  call = current_call.current()
  if call is not None and told:
    call.was_told, call.waiting_since = True, None


def _timed(message: str, start: float, how: str = '') -> str:
  """Returns the line with the milliseconds that the user waited; '' for ''."""
  spent = (time.perf_counter() - current_call.since(start)) * 1e3
  digits = f'{spent:.0f}' if spent >= 10 else f'{spent:.2g}'
  return message and f'{message}; {digits} ms spent{how}'


class _Cache:
  """Holds the most recently used answers. Any thread may use it."""

  def __init__(self, size: int) -> None:
    self._size = size
    self._items: collections.OrderedDict[tuple[Any, ...],
                                         _Kept] = collections.OrderedDict()
    self._lock = threading.Lock()

  def get(self, key: tuple[Any, ...]) -> _Kept | None:
    """Returns the answer to a query; None if there is none."""
    with self._lock:
      if key in self._items:
        self._items.move_to_end(key)
      return self._items.get(key)

  def __setitem__(self, key: tuple[Any, ...], value: _Kept) -> None:
    with self._lock:
      self._items[key] = value
      self._items.move_to_end(key)
      while len(self._items) > self._size:
        self._items.popitem(last=False)


def _source_graph(query: library.Query, wishes: wishes_lib.Wishes,
                  settings: settings_lib.Settings) -> source_graph.SourceGraph:
  from tensorflow.core.framework import graph_pb2

  from gdp_grappler.graph import source_graph
  from gdp_grappler.graph.legality import asked
  from gdp_grappler.graph.sources import captures
  from gdp_grappler.plugin import capture
  from gdp_grappler.plugin import decisions
  graph_def = graph_pb2.GraphDef.FromString(query.graph)
  if wishes.devices:
    asked.mark(graph_def, lambda node: wishes.of(node, query.graph_id))
  if isinstance(settings.plan, tuple) and any(
      choice.PART in name for name, _ in settings.plan):
    # Parts of a table are found by the names of their variables.
    captures.name_arguments(
        graph_def, captures.received(graph_def, captures.alive(query.graph_id)))
  # A function is fed through its arguments, a session through its feeds.
  feeds = query.feeds + tuple(
      node.name for node in graph_def.node if node.op == '_Arg')
  fetches = tuple(dict.fromkeys(map(name_parts.node_of, query.fetches)))
  return source_graph.SourceGraph(
      capture.readable_name(query.graph_id, graph_def), graph_def, feeds,
      fetches, query.devices, decisions.fingerprint(query))


def _capture(source: source_graph.SourceGraph, query: library.Query,
             directory: str, call: current_call.RunningCall | None) -> None:
  """Writes a copy of a graph, with the names of variables, to a folder."""
  from gdp_grappler.graph.sources import captures
  from gdp_grappler.plugin import capture
  graph_def = type(source.graph_def)()
  graph_def.CopyFrom(source.graph_def)
  captures.name_variables(graph_def, captures.alive(query.graph_id))
  try:
    capture.write(dataclasses.replace(source, graph_def=graph_def),
                  query.fingerprint, directory, call)
  except errors.GdpError as error:
    # The text of the error names a file, so it differs for each graph. Equal
    # notices are printed once. So the notice has only the reason.
    reason = getattr(error.__cause__, 'strerror', None) or error.__cause__
    notices.warn_once(
        f'Graphs cannot be captured in {directory}: {reason}. Set '
        f'{environment.CAPTURE_DIR} to a directory that can be written and '
        'has space.')


def _check(decision: library.Decision | None, source: source_graph.SourceGraph,
           query: library.Query) -> None:
  """Raises an error if a decision is not a placement of the graph.

  Raises:
    InfeasiblePlacementError: the number of devices is not the number of nodes,
      a device is unknown, or a control edge joins a node with itself or with a
      node that does not exist.
  """
  if decision is None:
    return
  # The pass itself checks a graph that replaces the program's.
  nodes = (len(source.graph_def.node)
           if decision.graph is None else len(decision.devices))
  if len(decision.devices) != nodes:
    raise errors.InfeasiblePlacementError(
        f'The placer gave {len(decision.devices)} devices for {nodes} ops.')
  unknown = set(decision.devices) - set(query.devices)
  if unknown:
    raise errors.InfeasiblePlacementError(
        f'The placer gave the unknown device "{min(map(str, unknown))}".')
  for first, then in decision.control_edges:
    if first == then or not (0 <= first < nodes and 0 <= then < nodes):
      raise errors.InfeasiblePlacementError(
          f'The placer gave a control edge from op {first} to op {then} of '
          f'{nodes}.')


def _explain(error: BaseException, query: library.Query, start: float) -> str:
  call = current_call.current()
  if isinstance(error, TimeoutError):
    return _timed(
        f'{current_call.title(query.graph_id, call)}: left as it was: placing '
        'it took longer than its time budget; raise '
        "'time_budget_s' in the option gdp_placement", start)
  if isinstance(error, placer_thread.StillBusyError):
    return ('Graphs are left as they were while the placer is still busy '
            'with one that ran out of time.')
  if isinstance(error, errors.GdpError):
    said = current_call.explained(str(error), query.graph_id, call)
    return f'Graphs are left as they were. {said}'
  return (f'Graphs are left as they were: placing one failed with '
          f'{type(error).__name__}: {error}. Please report it, with the graph '
          f'that {environment.CAPTURE_DIR}=DIR writes; {environment.DISABLE}=1 '
          'keeps the plugin out.')
