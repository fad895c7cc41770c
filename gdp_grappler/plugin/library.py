"""The C interface of `grappler_pass.cc`."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Callable

from gdp_grappler import errors
from gdp_grappler import native
from gdp_grappler.plugin import interrupts
from gdp_grappler.plugin import notices

# Answers, see `grappler_pass.cc`.
_UNCHANGED, _PLACED, _NEEDS_GRAPH, _INTERRUPTED = range(4)


class NeedsGraph:
  """Answer to a query without a graph: the pass has to send the graph."""


@dataclasses.dataclass(frozen=True)
class Query:
  """A query of the pass about a graph.

  Attributes:
    graph_id: Name that the runtime gave to the graph.
    fingerprint: 16 hex digits of nodes, inputs, attributes and devices. `Host`
      appends a digest of the requests by tf.device, if there are any.
    settings: Settings as `option.add_to` wrote them into the configuration; ''
      if the graph is only captured.
    feeds: Nodes that the caller feeds.
    fetches: Nodes or tensors that the caller fetches.
    devices: Full names of the program's devices.
    graph: Serialized GraphDef; None if the query is only for a known decision.
    may_place: Whether the graph may be placed, not only captured.
  """

  graph_id: str
  fingerprint: str
  settings: str
  feeds: tuple[str, ...]
  fetches: tuple[str, ...]
  devices: tuple[str, ...]
  graph: bytes | None
  may_place: bool


@dataclasses.dataclass(frozen=True)
class Decision:
  """The decision about a graph of N nodes.

  Attributes:
    devices: [N] full names of the nodes' devices.
    control_edges: Pairs of node indices (first, then). The second node waits
      for the first.
    graph: Serialized GraphDef with N nodes that replaces the graph of the pass.
      None keeps that graph.
  """

  devices: tuple[str, ...]
  control_edges: tuple[tuple[int, int], ...] = ()
  graph: bytes | None = None


# None means that the graph stays as it was.
Answer = Decision | type[NeedsGraph] | None


class _Request(ctypes.Structure):
  """`GdpRequest`."""

  _fields_ = [
      ('id', ctypes.c_char_p),
      ('fingerprint', ctypes.c_char_p),
      ('settings', ctypes.c_char_p),
      ('feeds', ctypes.c_char_p),
      ('fetches', ctypes.c_char_p),
      ('devices', ctypes.c_char_p),
      ('graph', ctypes.c_void_p),
      ('graph_size', ctypes.c_size_t),
      ('may_place', ctypes.c_int),
  ]


class _Buffer(ctypes.Structure):
  """`GdpBuffer`."""

  _fields_ = [('data', ctypes.c_void_p), ('size', ctypes.c_size_t)]


_PlaceFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Request),
                                  ctypes.POINTER(_Buffer),
                                  ctypes.POINTER(_Buffer))
# Callbacks have to stay in memory, because the pass may call them at any time.
_registered: list[Callable[..., int]] = []


def register(function: Callable[[Query], Answer]) -> None:
  """Makes the pass call a function, from any thread.

  Args:
    function: Function that answers queries. If it raises an exception, the
      graph stays as it was.

  Raises:
    PluginError: the native library is missing or was built for another
      TensorFlow, or TensorFlow runs another copy of the library.
  """
  library = native.load(native.Library.GRAPPLER)
  if not library.gdp_is_registered():
    raise errors.PluginError(
        'Another copy of the native library is loaded in this process, and '
        'TensorFlow runs that one. Keep one installation of gdp-grappler on '
        'sys.path.')
  library.gdp_allocate.restype = ctypes.c_void_p
  library.gdp_allocate.argtypes = [ctypes.c_size_t]
  library.gdp_set_place_function.restype = None
  library.gdp_set_place_function.argtypes = [_PlaceFunction]
  callback = _PlaceFunction(_adapt(function, library.gdp_allocate))
  _registered.append(callback)
  library.gdp_set_place_function(callback)


def unregister() -> None:
  """Makes the pass leave every graph as it was from now on."""
  native.load(native.Library.GRAPPLER).gdp_set_place_function(_PlaceFunction())


def _adapt(function: Callable[[Query], Answer],
           allocate: Callable[[int], int | None]) -> Callable[..., int]:

  def answered(request: Any, response: Any, graph: Any) -> int:
    try:
      answer = function(_read(request.contents))
      if answer is NeedsGraph:
        return _NEEDS_GRAPH
      if not isinstance(answer, Decision):
        return _UNCHANGED
      _write(_lines_of(answer).encode(), allocate, response)
      if answer.graph is not None:
        _write(answer.graph, allocate, graph)
      return _PLACED
    except BaseException as error:
      cause = _of_program(error)
      if cause is None:
        _warn(f'answering the pass failed with {_named(error)}. Please report '
              'it.')
      elif (interrupts.raise_again(cause) or
            isinstance(cause, KeyboardInterrupt)):
        return _INTERRUPTED
      else:
        _warn(f'{_named(cause)} ended the search for a placement. A signal '
              'handler of the program has raised this exception, which cannot '
              'reach the program from the pass.')
      return _UNCHANGED

  def call(request: Any, response: Any, graph: Any) -> int:
    with interrupts.in_pass():
      return answered(request, response, graph)

  return call


def _of_program(error: BaseException) -> BaseException | None:
  """Returns the program's exception; None for an error of the pass."""
  if isinstance(error, interrupts.Interruption):
    return error.error
  is_of_program = (isinstance(error, KeyboardInterrupt) or
                   interrupts.is_of_program(error))
  return error if is_of_program else None


def _named(error: BaseException) -> str:
  return f'{type(error).__name__}: {error}'


def _warn(reason: str) -> None:
  """Warns why a graph stays as it was. Raises nothing, as C++ is the caller."""
  try:
    notices.warn_once(f'Graphs are left as they were: {reason}')
  except BaseException:
    pass  # The user's own handler of the logger may fail.


def _read(request: _Request) -> Query:
  graph = None
  if request.graph is not None:
    graph = ctypes.string_at(request.graph, request.graph_size)
  return Query(request.id.decode(), request.fingerprint.decode(),
               request.settings.decode(), _lines(request.feeds),
               _lines(request.fetches), _lines(request.devices), graph,
               bool(request.may_place))


def _lines(text: bytes) -> tuple[str, ...]:
  return tuple(text.decode().split('\n')) if text else ()


def _lines_of(decision: Decision) -> str:
  return '\n'.join(
      (*decision.devices,
       *(f'{first} {then}' for first, then in decision.control_edges)))


def _write(data: bytes, allocate: Callable[[int], int | None],
           buffer: Any) -> None:
  place = allocate(len(data))
  if place is None:
    raise MemoryError
  ctypes.memmove(place, data, len(data))
  buffer.contents.data, buffer.contents.size = place, len(data)
