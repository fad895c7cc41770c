"""The C interface of `grappler_pass.cc`."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Callable

from gdp_grappler import errors
from gdp_grappler import native
from gdp_grappler.plugin import notices

_UNCHANGED, _PLACED, _NEEDS_GRAPH, _INTERRUPTED = range(4)


class NeedsGraph:
  """Answer to a query without a graph: ask again with it."""


@dataclasses.dataclass(frozen=True)
class Query:
  """What the pass asks.

  Attributes:
    graph_id: Name that the runtime gave to the graph.
    fingerprint: 16 hex digits of nodes, inputs, attributes and devices.
    settings: As `option.add_to` wrote them; '' if the graph is only captured.
    feeds: Nodes that the caller feeds.
    fetches: Nodes or tensors that the caller fetches.
    devices: Full names of the devices an op may have.
    graph: Serialized GraphDef; None if the pass only asks for what is known.
    may_place: Whether there is anything to choose.
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
  """What to do with a graph of N nodes.

  Attributes:
    devices: [N] full names.
    control_edges: Numbers of nodes (first, then): the second one is to wait
      for the first one.
    graph: Serialized GraphDef that takes the place of the one that the pass
      has, and whose nodes these are; None to leave it there.
  """

  devices: tuple[str, ...]
  control_edges: tuple[tuple[int, int], ...] = ()
  graph: bytes | None = None


# None leaves the graph alone.
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
# The pass may call them as long as the process lives.
_registered: list[Callable[..., int]] = []


def register(function: Callable[[Query], Answer]) -> None:
  """Lets the pass call `function`, from any thread.

  Args:
    function: Should not raise; if it does, the graph is left alone.

  Raises:
    PluginError: the native library is missing or does not fit, or another copy
      of it came first.
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
  """From now on the pass leaves every graph alone."""
  native.load(native.Library.GRAPPLER).gdp_set_place_function(_PlaceFunction())


def _adapt(function: Callable[[Query], Answer],
           allocate: Callable[[int], int | None]) -> Callable[..., int]:

  def call(request: Any, response: Any, graph: Any) -> int:
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
    except KeyboardInterrupt:
      return _INTERRUPTED
    except BaseException as error:
      _warn(error)
      return _UNCHANGED

  return call


def _warn(error: BaseException) -> None:
  """Says why a graph is left alone; nothing may be raised into C++."""
  try:
    notices.warn_once(
        'Graphs are left as they were: answering the pass failed '
        f'with {type(error).__name__}: {error}. Please report it.')
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
