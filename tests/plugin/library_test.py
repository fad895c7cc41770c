"""The C interface, called as the pass calls it."""

from concurrent import futures
import ctypes
import pathlib
import re
import signal

import pytest

from gdp_grappler.plugin import interrupts
from gdp_grappler.plugin import library
from helpers import alarms

# Sources are not installed.
_PASS = (pathlib.Path(__file__).parents[2] / 'gdp_grappler' / 'plugin'
         / 'grappler_pass.cc').read_text()


class _Caller:
  """Sends one request, as the pass does, and keeps the allocated buffers."""

  def __init__(self, function, graph: bytes | None = None, room: bool = True):
    self._buffers = []
    request = library._Request(id=b'step', fingerprint=b'ab', settings=b'{}',
                               feeds=b'a\nb', fetches=b'', devices=b'd0\nd1',
                               may_place=1)
    if graph is not None:
      self._graph = ctypes.create_string_buffer(graph, len(graph))
      request.graph = ctypes.addressof(self._graph)
      request.graph_size = len(graph)
    buffers = library._Buffer(), library._Buffer()
    call = library._adapt(function, self._allocate if room else lambda _: None)
    self.code = call(ctypes.pointer(request), *map(ctypes.pointer, buffers))
    self.response, self.graph = (ctypes.string_at(buffer.data, buffer.size)
                                 if buffer.data else None for buffer in buffers)

  def _allocate(self, size: int) -> int:
    self._buffers.append(ctypes.create_string_buffer(size))
    return ctypes.addressof(self._buffers[-1])


def test_the_question_arrives():
  asked = []
  _Caller(asked.append)
  _Caller(asked.append, graph=b'\x00\x01\x00')
  first, second = asked
  assert first == library.Query('step', 'ab', '{}', ('a', 'b'), (),
                                ('d0', 'd1'), None, True)
  assert second.graph == b'\x00\x01\x00'


def _raises(error):

  def function(_):
    raise error

  return function


@pytest.mark.parametrize('function, code', [
    (lambda _: None, library._UNCHANGED),
    (lambda _: library.NeedsGraph, library._NEEDS_GRAPH),
    (lambda _: 'nonsense', library._UNCHANGED),
    (_raises(ValueError()), library._UNCHANGED),
    (_raises(SystemExit()), library._UNCHANGED),
])
def test_answers_without_devices(function, code):
  caller = _Caller(function)
  assert (caller.code, caller.response) == (code, None)


@pytest.mark.parametrize('error, cause', [
    (KeyboardInterrupt, KeyboardInterrupt),
    (lambda: interrupts.Interruption(TimeoutError('mine')), TimeoutError),
])
def test_an_exception_of_the_program_is_raised_after_the_pass(error, cause):
  before = signal.getsignal(signal.SIGINT)
  assert _Caller(_raises(error())).code == library._INTERRUPTED
  with pytest.raises(cause):
    signal.raise_signal(signal.SIGINT)
  assert signal.getsignal(signal.SIGINT) is before


def test_a_timeout_of_the_program_is_raised_after_the_pass():
  """Once a warning called the timeout a failure of the pass."""
  with alarms.alarm() as ring:
    assert _Caller(ring).code == library._INTERRUPTED
    with pytest.raises(alarms.TooLongError):
      signal.raise_signal(signal.SIGINT)


def test_where_no_signal_is_handled_it_is_said(monkeypatch):
  said = []
  monkeypatch.setattr(library.notices, 'warn_once', said.append)
  error = interrupts.Interruption(TimeoutError('mine'))
  with futures.ThreadPoolExecutor(1) as other:
    caller = other.submit(_Caller, _raises(error)).result()
  assert caller.code == library._UNCHANGED
  assert 'TimeoutError: mine ended the search' in said[0]
  assert 'report' not in said[0]


def test_an_unexpected_error_is_said_once(monkeypatch):
  said = []
  monkeypatch.setattr(library.notices, 'warn_once', said.append)
  assert _Caller(_raises(ValueError('why'))).code == library._UNCHANGED
  line, = said
  assert 'ValueError: why' in line


def test_a_warning_that_cannot_be_written_is_not_raised_into_cpp(monkeypatch):
  monkeypatch.setattr(library.notices, 'warn_once',
                      _raises(ValueError('closed file')))
  assert _Caller(_raises(ValueError('why'))).code == library._UNCHANGED


def test_devices_then_control_edges_a_line_each():
  caller = _Caller(lambda _: library.Decision(('d0', 'd1', 'd0'), ((0, 2),
                                                                   (1, 2))))
  assert caller.code == library._PLACED
  assert caller.response == b'd0\nd1\nd0\n0 2\n1 2'


def test_a_graph_that_takes_the_place_of_the_one_asked_about():
  assert _Caller(lambda _: library.Decision(('d0',))).graph is None
  caller = _Caller(lambda _: library.Decision(('d0',), graph=b'\x00\x07'))
  assert (caller.response, caller.graph) == (b'd0', b'\x00\x07')


def test_without_memory_the_graph_is_left_alone():
  caller = _Caller(lambda _: library.Decision(('d0',)), room=False)
  assert (caller.code, caller.response) == (library._UNCHANGED, None)


def test_codes_and_fields_are_those_of_c():
  codes = re.findall(r'GDP_([A-Z_]+) = (\d)', _PASS)
  assert {name: int(code) for name, code in codes
         } == {name: getattr(library, f'_{name}') for name, _ in codes}
  for name, mirror in (('GdpRequest', library._Request), ('GdpBuffer',
                                                          library._Buffer)):
    struct = re.search(rf'struct {name} {{(.*?)}};', _PASS, re.DOTALL)[1]
    fields = re.findall(r'(\w+);', re.sub(r'//.*', '', struct))
    assert fields == [name for name, *_ in mirror._fields_]
