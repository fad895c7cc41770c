import dataclasses
import functools
import gc
import re
import threading
import types

import pytest
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import asked
from gdp_grappler.graph.sources import wishes as wishes_lib
from gdp_grappler.plugin import batches
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import host
from gdp_grappler.plugin import library
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import placer_thread
from gdp_grappler.plugin import settings
from helpers import processes

_DEVICES = tuple(
    f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(2))

_ALTERNATING = library.Decision((*_DEVICES, _DEVICES[0]))


class _Optimizer:
  """Alternates the devices, and remembers the graphs that it got."""

  def __init__(self, message=''):
    self.asked = []
    self.message = message

  def __call__(self, source, option):
    self.asked.append((source, option))
    count = len(source.graph_def.node)
    return outcome_lib.Outcome((_DEVICES * count)[:count], self.message)


@pytest.fixture
def lines(monkeypatch):
  result = []
  monkeypatch.setattr(host.notices, 'say', lambda text: result.append(text)
                      if text else None)
  monkeypatch.setattr(host.notices, 'warn_once',
                      lambda text: result.append('W ' + text))
  return result


@pytest.fixture(autouse=True)
def no_capture(monkeypatch):
  monkeypatch.delenv('GDP_CAPTURE_DIR', raising=False)


@pytest.fixture(autouse=True, name='wishes')
def _wishes(monkeypatch):
  """Requests by tf.device by name of graph. Tests fill it."""
  result = {}
  monkeypatch.setattr(host.asked_devices, 'of',
                      lambda name: result.get(name, wishes_lib.NONE))
  return result


def _query(**changes):
  graph = graph_pb2.GraphDef()
  for name, op in (('x', '_Arg'), ('y', 'Sin'), ('z', 'Cos')):
    graph.node.add(name=name, op=op)
  query = library.Query(graph_id='__inference_step_12', fingerprint='ab12',
                        feeds=('f',),
                        settings=settings.Settings(seed=4).to_json(),
                        fetches=('z:0', '^y', 'z'), devices=_DEVICES,
                        graph=graph.SerializeToString(), may_place=True)
  return dataclasses.replace(query, **changes)


def _untimed(lines):
  """The lines, with the milliseconds removed from each."""
  return [re.sub(r'; [\d.e+-]+ ms spent', '; spent', line) for line in lines]


def _host(optimize):
  return host.Host(optimize, placer_thread.PlacerThread())


def test_placer_sees_graph_and_settings(lines):
  optimizer = _Optimizer('done')
  assert _host(optimizer).answer(_query()) == _ALTERNATING
  (source, option), = optimizer.asked
  assert source.name == 'step'
  assert [node.name for node in source.graph_def.node] == ['x', 'y', 'z']
  assert source.feeds == ('f', 'x')
  assert source.fetches == ('z', 'y')
  assert source.devices == _DEVICES
  assert option == settings.Settings(seed=4)
  assert _untimed(lines) == ['done; spent']


def test_graphs_with_one_topic_have_one_line(lines, monkeypatch):
  monkeypatch.setattr(host.notices, '_topics', set())
  served = _host(lambda source, option: outcome_lib.Outcome(
      None, f'{source.name}: left as it was: why', topic='why'))
  for name in ('__inference_step_12', '__inference_other_4'):
    assert served.answer(_query(graph_id=name, fingerprint=name)) is None
  served.answer(_query(graph=None, fingerprint='__inference_other_4'))
  assert _untimed(lines) == ['step: left as it was: why; spent']


def test_each_model_has_a_line_of_its_own_on_one_topic(lines, monkeypatch):
  """Once a function without the layers used up the line of each model."""
  monkeypatch.setattr(host.notices, '_topics', set())
  served = _host(lambda source, option: outcome_lib.Outcome(
      None, f'{source.name}: left as it was: why', topic='why'))
  for what in ('', 'fit of "a"', 'evaluate of "a"', 'fit of "b"'):
    call = what and types.SimpleNamespace(
        what=what, was_told=False, waiting_since=None, task=lambda query: None)
    monkeypatch.setattr(host.current_call, 'current',
                        functools.partial(lambda call: call or None, call))
    served.answer(
        _query(graph_id=f'__inference_step_{len(lines)}', fingerprint=what or
               'other'))
  assert len(lines) == 3


def test_unknown_graph_is_asked_for_and_known_one_is_not(lines):
  optimizer = _Optimizer('done')
  served = _host(optimizer)
  assert served.answer(_query(graph=None)) is library.NeedsGraph
  first = served.answer(_query())
  assert served.answer(_query(graph=None)) == first
  assert len(optimizer.asked) == 1
  assert _untimed(lines)[1] == 'done; spent, as decided earlier in this run'


@pytest.mark.parametrize('change', [{'fingerprint':
    'cd34'}, {'settings': settings.Settings().to_json()}, {'feeds':
        ()}, {'fetches':
            ('y',)}, {'devices': _DEVICES[:1]}, {'may_place': False}])
def test_everything_that_matters_is_part_of_the_key(change, lines):
  served = _host(_Optimizer())
  served.answer(_query())
  assert (served.answer(_query(graph=None, **change)) is library.NeedsGraph)


def test_batches_that_are_known_are_told_and_part_of_the_key(lines):
  optimizer = _Optimizer()
  served = _host(optimizer)
  with batches.assumed(256):
    served.answer(_query())
  assert served.answer(_query(graph=None)) is library.NeedsGraph
  served.answer(_query())
  with batches.assumed(256):
    assert served.answer(_query(graph=None)) == _ALTERNATING
    served.answer(_query(settings=settings.Settings(batch_size=8).to_json()))
  assert [option.batch_size for _, option in optimizer.asked] == [256, None, 8]


def test_decision_to_leave_alone_is_remembered(lines):
  served = _host(lambda *_: outcome_lib.Outcome(None, 'left'))
  assert served.answer(_query()) is None
  assert served.answer(_query(graph=None)) is None
  assert _untimed(lines)[1] == 'left; spent, as decided earlier in this run'


def test_cache_forgets_the_oldest(monkeypatch, lines):
  monkeypatch.setattr(host, '_CACHE_SIZE', 2)
  served = _host(_Optimizer())
  for fingerprint in 'abc':
    served.answer(_query(fingerprint=fingerprint))
  known = [
      served.answer(_query(fingerprint=f, graph=None)) is not library.NeedsGraph
      for f in 'abc'
  ]
  assert known == [False, True, True]


@pytest.mark.parametrize(
    'error, line',
    [(ValueError('bad\nthing'), 'failed with ValueError: bad\nthing.'),
     (errors.PolicyMismatchError('Wrong policy. Train again.'),
      'Wrong policy. Train again.'), (SystemExit(2), 'SystemExit')])
def test_what_a_placer_raises_becomes_a_warning(error, line, lines):

  def fail(*_):
    raise error

  served = _host(fail)
  assert served.answer(_query()) is None
  assert len(lines) == 1 and lines[0].startswith('W ') and line in lines[0]
  # An error may be gone next time.
  assert served.answer(_query(graph=None)) is library.NeedsGraph


@pytest.mark.parametrize('devices, line',
                         [(_DEVICES, 'gave 2 devices for 3 ops'),
                          ((), 'gave 0 devices'),
                          (('CPU:0',) * 3, 'unknown device "CPU:0"')])
def test_rubbish_becomes_a_warning(devices, line, lines):
  assert _host(lambda *_: outcome_lib.Outcome(devices, '')).answer(
      _query()) is None
  assert len(lines) == 1 and line in lines[0]


def test_control_edges_are_handed_on_and_cached(lines):
  served = _host(lambda *_: outcome_lib.Outcome(_ALTERNATING.devices, '',
                                                ((0, 2),)))
  assert served.answer(_query()).control_edges == ((0, 2),)
  assert served.answer(_query(graph=None)).control_edges == ((0, 2),)


@pytest.mark.parametrize('edge', [(1, 1), (0, 3), (-1, 0)])
def test_control_edges_between_no_nodes_become_a_warning(edge, lines):
  outcome = outcome_lib.Outcome(_ALTERNATING.devices, '', (edge,))
  assert _host(lambda *_: outcome).answer(_query()) is None
  assert len(lines) == 1 and f'from op {edge[0]} to op {edge[1]}' in lines[0]


def test_answer_that_comes_too_late_serves_the_next_query(lines):
  go = threading.Event()

  def slow(source, option):
    go.wait(20)
    return _Optimizer('done')(source, option)

  served = _host(slow)
  hurry = settings.Settings(time_budget_s=0.05).to_json()
  served.answer(_query(fingerprint='warm', may_place=False))
  assert served.answer(_query(settings=hurry)) is None
  said = lines.pop()
  assert said.startswith(
      'W step: left as it was: placing it took longer than its')
  # The line says how long the user has waited in vain.
  assert re.search(r'; \d+ ms spent$', said)
  go.set()
  answers = []

  def answered() -> bool:
    answers.append(served.answer(_query(settings=hurry, graph=None)))
    return answers[-1] is not library.NeedsGraph

  processes.wait_until(answered)
  assert answers[-1] == _ALTERNATING
  assert _untimed(lines) == ['done; spent, as decided earlier in this run']


def test_no_garbage_is_collected_while_a_program_waits(lines):
  del lines
  seen = []

  def fail(*_):
    seen.append(gc.isenabled())
    raise ValueError

  gc.enable()
  for optimize in (fail, _Optimizer()):
    _host(optimize).answer(_query())
    assert gc.isenabled()
  assert seen == [False]


def test_placers_own_graphs_are_left_alone(lines):
  inner = []

  def optimize(source, option):
    inner.append(served.answer(_query(graph=None)))
    return outcome_lib.Outcome(None, '')

  served = _host(optimize)
  served.answer(_query())
  assert inner == [None]


def test_nothing_to_choose_is_not_shown_to_the_placer(lines):
  optimizer = _Optimizer()
  assert _host(optimizer).answer(_query(may_place=False)) is None
  assert not optimizer.asked and not lines


@pytest.mark.parametrize('may_place', [True, False])
def test_captures_what_it_receives(may_place, monkeypatch, tmp_path, lines):
  """Once marks for the file also pinned variables of the program."""
  monkeypatch.setenv('GDP_CAPTURE_DIR', str(tmp_path))
  monkeypatch.setattr('gdp_grappler.graph.sources.captures.name_variables',
                      lambda graph_def, _: graph_def.node.add(name='mark'))
  optimizer = _Optimizer()
  _host(optimizer).answer(_query(may_place=may_place))
  assert [len(s.graph_def.node) for s, _ in optimizer.asked] == [3] * may_place
  file, = tmp_path.iterdir()
  assert file.name == 'step_4_ab12.pb'
  source = source_graph.from_meta_graph(
      meta_graph_pb2.MetaGraphDef.FromString(file.read_bytes()))
  assert (source.name, source.fetches) == ('step', ('z', 'y'))


def test_failing_capture_does_not_stop_the_placer(monkeypatch, tmp_path, lines):
  file = tmp_path / 'file'
  file.write_text('')
  monkeypatch.setenv('GDP_CAPTURE_DIR', str(file))
  for name in ('ab12', 'cd34'):
    assert _host(_Optimizer()).answer(_query(fingerprint=name)) is not None
  line, = set(lines)
  assert f'cannot be captured in {file}' in line and 'GDP_CAPTURE_DIR' in line


def test_placer_is_told_what_was_asked_for(wishes):
  wishes['f'] = wishes_lib.Wishes({('f', 'y'): '/device:CPU:1'})
  graph = graph_pb2.GraphDef.FromString(_query().graph)
  for node in graph.node:
    node.device = _DEVICES[1]
  query = _query(graph_id='f', graph=graph.SerializeToString())
  optimizer = _Optimizer()
  _host(optimizer).answer(query)
  (source, _), = optimizer.asked
  assert [*map(asked.device, source.graph_def.node)] == ['', _DEVICES[1], '']


def test_graphs_that_differ_in_what_was_asked_for_are_two(wishes):
  wishes['f'] = wishes_lib.Wishes({('f', 'y'): '/device:CPU:1'})
  optimizer = _Optimizer()
  known = _host(optimizer)
  for name in ('f', 'g', 'f', 'g'):
    query = _query(graph_id=name)
    if known.answer(dataclasses.replace(query,
                                        graph=None)) is library.NeedsGraph:
      known.answer(query)
  assert len(optimizer.asked) == 2


@pytest.mark.parametrize('option', [{'pins': 'ignore'}, {'plan': 'p.json'}])
def test_nothing_is_asked_for_where_it_does_not_count(wishes, option):
  wishes['f'] = wishes_lib.Wishes({('f', 'y'): '/device:CPU:1'})
  optimizer = _Optimizer()
  _host(optimizer).answer(
      _query(graph_id='f', settings=settings.Settings(**option).to_json()))
  (source, _), = optimizer.asked
  assert not any(map(asked.device, source.graph_def.node))


def test_graph_of_another_process_is_told(wishes, lines):
  wishes['f'] = wishes_lib.UNKNOWN
  _host(_Optimizer('done')).answer(_query(graph_id='f'))
  assert 'tf.device are not known here: gdp_grappler.pin keeps' in lines[0]


class _Call:
  """A fit whose step is planned, cancelled and then placed."""
  what, is_placed, has_clusters = 'fit of "model"', False, False
  was_told, waiting_since = False, None

  def task(self, query):
    return lambda source, option: outcome_lib.Outcome(
        None, query.graph_id and self.line)

  def decided(self):
    pass


def test_a_graph_from_the_cache_has_the_name_of_the_function_that_runs(lines):
  """Once the line named the function that had this graph before."""
  known = _host(_Optimizer('one: 9 ops placed'))
  known.answer(_query(graph_id='__inference_one_12'))
  known.answer(_query(graph_id='__inference_two_12', graph=None))
  assert [line.split(';')[0] for line in lines
         ] == ['one: 9 ops placed', 'two: 9 ops placed']


def test_errors_of_a_fit_name_it(lines):

  def fail(source, option):
    del option
    raise errors.GdpError(f'Graph "{source.name}" does not fit. Do this.')

  current_call.run(current_call.Named('fit of "model"'),
                   _host(fail).answer,
                   _query(graph_id='__inference_one_step_on_data_12'))
  assert lines == [
      'W Graphs are left as they were. Graph fit of "model" does not fit. Do '
      'this.'
  ]


def test_line_of_a_fit_names_it_and_counts_all_that_was_waited_for(
    monkeypatch, lines):
  now = iter(range(100, 200, 10))
  monkeypatch.setattr(host.time, 'perf_counter', lambda: next(now))
  call, known = _Call(), _host(_Optimizer())
  query = _query(graph_id='__inference_one_step_on_data_12')
  call.line = ''
  current_call.run(call, known.answer, query)
  assert call.waiting_since == 100 and not lines
  call.line = 'one_step_on_data: 9 ops placed'
  current_call.run(call, known.answer, query)
  line, = lines
  assert line.startswith('fit of "model": 9 ops placed; ')
  # The clock was read four times, and advances by 10 s each time.
  assert line.endswith('30000 ms spent')
  assert call.was_told and call.waiting_since is None
