from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys

import hypothesis
from hypothesis import strategies as st
import pytest

from gdp_grappler import digests
from gdp_grappler import plugin
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.policy import policy_ops
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.placers.search.moves import shipped_moves
from gdp_grappler.plugin import decisions
from gdp_grappler.plugin import library
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import outcome as outcome_lib
from gdp_grappler.plugin import settings as settings_lib
from helpers import graph_defs

_DEVICES = tuple(
    f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(2))
_SETTINGS = settings_lib.Settings()
_OUTCOME = outcome_lib.Outcome((_DEVICES[1], _DEVICES[0], _DEVICES[1]),
                               'step: 3 ops placed', ((0, 2),), 2., 1.)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path))
  return tmp_path / 'decisions'


@pytest.fixture
def warnings(monkeypatch):
  result = []
  monkeypatch.setattr(decisions.notices, 'warn_once', result.append)
  return result


def _query(**changes):
  return dataclasses.replace(
      library.Query('id', '0123', '', ('a',), ('b',), _DEVICES, None, True),
      **changes)


def test_what_is_kept_is_recalled():
  assert decisions.recall('k', _DEVICES) is None
  decisions.keep('k', _OUTCOME)
  found = decisions.recall('k', _DEVICES)
  assert dataclasses.replace(found, message='') == dataclasses.replace(
      _OUTCOME, message='')


@pytest.mark.parametrize('own, when', [(True, 'earlier in this run'),
                                       (False, 'in an earlier run')])
def test_the_line_says_in_which_run_a_graph_was_decided(own, when, monkeypatch):
  """Once the line called a decision of this process one of an earlier run."""
  monkeypatch.setattr(decisions, '_own', set())
  decisions.keep('k', _OUTCOME)
  if not own:
    decisions._own.clear()
  found = decisions.recall('k', _DEVICES)
  assert found.message == f'step: 3 ops placed; as decided {when}'


@pytest.mark.parametrize('outcome', [
    outcome_lib.Outcome(None, ''),
    dataclasses.replace(_OUTCOME, message='', fitted=False),
    outcome_lib.Outcome(None, '', topic='left')
])
def test_all_that_was_decided_is_recalled(outcome):
  decisions.keep('k', outcome)
  assert decisions.recall('k', _DEVICES) == outcome


def test_without_a_key_nothing_is_kept(folder):
  decisions.keep('', _OUTCOME)
  assert not folder.exists() and decisions.recall('', _DEVICES) is None


@pytest.mark.parametrize('op_type, kept', [('Relu', True),
                                           ('StatefulPartitionedCall', False),
                                           ('While', False),
                                           ('own_function', False)])
def test_a_graph_with_calls_of_functions_is_placed_anew(folder, monkeypatch,
                                                        op_type, kept):
  """The fingerprint does not include the called functions."""
  asked = []
  monkeypatch.setattr(optimizer, 'optimize', lambda *args, **unused:
                      (asked.append(args), _OUTCOME)[1])
  definition = graph_defs.graph_def(graph_defs.node('a', 'Const'),
                                    graph_defs.node('b', op_type, ['a']),
                                    graph_defs.node('c', 'Relu', ['b']))
  definition.library.function.add().signature.name = 'own_function'
  source = graph_defs.source(definition, devices=_DEVICES, fingerprint='g')
  for _ in range(2):
    decisions.optimize(source, _SETTINGS)
  assert len(asked) == (1 if kept else 2)
  assert folder.exists() == kept


@pytest.mark.parametrize('changes', [{'fingerprint': '4567'}, {'feeds':
    ('c',)}, {'fetches': ('a', 'b')}, {'feeds': (), 'fetches': ('a', 'b')}])
def test_another_graph_has_another_fingerprint(changes):
  assert decisions.fingerprint(_query()) != decisions.fingerprint(
      _query(**changes))


def test_the_key_has_all_that_a_decision_depends_on(tmp_path, monkeypatch):

  def key(settings=_SETTINGS, devices=_DEVICES, **more):
    return decisions.key('g', devices, settings, **more)

  def changed(**changes):
    return key(dataclasses.replace(_SETTINGS, **changes))

  plan, profile = tmp_path / 'plan.json', tmp_path / 'profile.json'
  plan.write_text('{}')
  profile.write_text('{}')
  keys = [
      key(),
      decisions.key('h', _DEVICES, _SETTINGS),
      key(devices=_DEVICES[:1]),
      key(relocatable=True),
      key(relocatable=True, fixed=(1,)),
      key(relocatable=True, fixed=(1, 2)),
      changed(seed=1),
      changed(batch_size=7),
      changed(cluster='2xP100'),
      changed(plan=(('a', 'GPU:0'),)),
      changed(plan=str(plan)),
      changed(profile=str(profile)),
      changed(policy=str(tmp_path)),
  ]
  plan.write_text('{"a": 1}')
  keys.append(changed(plan=str(plan)))
  profile.write_text('{"a": 1}')
  keys.append(changed(profile=str(profile)))
  (tmp_path / 'saved_model.pb').write_text('new')
  keys.append(changed(policy=str(tmp_path)))
  monkeypatch.setattr(decisions, '_software', lambda: 'a later version')
  keys.append(key())
  assert len(set(keys)) == len(keys) and all(keys)
  assert key() == keys[-1]
  assert not changed(cache=False) and not decisions.key('', (), _SETTINGS)


@hypothesis.settings(
    max_examples=100, deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(st.integers(0, 10**6), st.integers(0, 255))
def test_what_was_changed_is_not_used(warnings, at, byte):
  # This replaces the file that the example before has damaged.
  decisions.keep('k', _OUTCOME)
  assert decisions.recall('k', _DEVICES) is not None
  place = decisions._place('k')
  data = bytearray(place.read_bytes())
  before = bytes(data)
  data[at % len(data)] = byte
  place.write_bytes(data)
  warnings.clear()
  found = decisions.recall('k', _DEVICES)
  if found is None:
    assert len(warnings) == 1 and 'is damaged. The graph is' in warnings[0]
  else:  # The byte changed nothing in the JSON.
    assert found.devices == _OUTCOME.devices
    assert json.loads(bytes(data)) == json.loads(before)


def test_a_decision_under_the_name_of_another_is_not_used(warnings):
  """Once a graph got the devices and the line of another graph."""
  decisions.keep('k', _OUTCOME)
  decisions._place('k').rename(decisions._place('l'))
  assert decisions.recall('l', _DEVICES) is None
  assert len(warnings) == 1 and 'l.json is damaged' in warnings[0]


def test_names_of_files_need_not_be_text(tmp_path):
  """Once a plan was not used if its folder's name is not UTF-8."""
  path = os.fsdecode(os.fsencode(tmp_path) + b'/caf\xe9.json')
  other = os.fsdecode(os.fsencode(tmp_path) + b'/caf\xe8.json')
  keys = [
      decisions.key('g', _DEVICES, dataclasses.replace(_SETTINGS, plan=plan))
      for plan in (path, other)
  ]
  assert all(keys) and keys[0] != keys[1]


def test_a_file_that_cannot_be_looked_up_has_a_key():
  """Once the line asked the user to report a failure of the plugin."""
  assert decisions.key('g', _DEVICES,
                       dataclasses.replace(_SETTINGS, plan='x' * 5000))


def test_the_content_of_a_folder_does_not_count(tmp_path, monkeypatch):
  """Once `plan='/'` listed all files, and no graph was placed any more."""

  def keys():
    monkeypatch.setenv('GDP_POLICY', str(tmp_path))
    return [
        decisions.key('g', _DEVICES, dataclasses.replace(_SETTINGS, **setting))
        for setting in ({}, {'plan': str(tmp_path)}, {'profile': str(tmp_path)})
    ]

  (tmp_path / 'folder').mkdir()
  before = keys()
  (tmp_path / 'folder' / 'file').write_text('new')
  assert keys() == before and all(before)


def test_a_loop_of_links_has_a_key(tmp_path):
  (tmp_path / 'plan').symlink_to('plan')
  assert decisions.key(
      'g', _DEVICES, dataclasses.replace(_SETTINGS,
                                         plan=str(tmp_path / 'plan')))


def test_all_files_of_the_shipped_policy_count():
  found = policy_ops._file_digests(pathlib.Path(
      shipped_policy.shipped_policy()))
  assert {'policy.json', *found} <= set(decisions.POLICY_FILES)


def test_all_files_of_a_move_network_count(tmp_path):
  move_folder.save(tmp_path, shipped_moves.network(), {})
  assert {path.name for path in tmp_path.iterdir()
         } <= set(decisions.POLICY_FILES)


def test_devices_that_the_program_lacks_are_not_used(warnings):
  decisions.keep('k', _OUTCOME)
  assert decisions.recall('k', _DEVICES[:1]) is None
  assert len(warnings) == 1


@pytest.mark.parametrize(
    'changes',
    [{'names': None}, {'names': []}, {'devices': 'AAAA'}, {'devices': 3},
     {'control_edges': [[1]]}, {'control_edges': None}])
def test_what_nobody_wrote_is_not_used(changes, warnings):
  fields = json.loads(json.dumps(decisions._to_json('k', _OUTCOME))) | changes
  decisions.keep('k', _OUTCOME)
  decisions._place('k').write_text(json.dumps(digests.sealed(fields)))
  assert decisions.recall('k', _DEVICES) is None
  assert len(warnings) == 1


def test_the_least_recently_used_go(folder, monkeypatch):
  monkeypatch.setattr(decisions, 'MOST_ENTRIES', 2)
  for i, name in enumerate('abc'):
    decisions.keep(name, _OUTCOME)
    os.utime(decisions._place(name), (i + 1, i + 1))
    if name == 'b':  # Uses 'a', so that 'b' is the least recently used.
      assert decisions.recall('a', _DEVICES) is not None
  left = sorted(path.stem for path in folder.iterdir())
  assert left == ['a', 'c']


def test_so_do_too_many_bytes(folder, monkeypatch):
  decisions.keep('a', _OUTCOME)
  os.utime(decisions._place('a'), (1, 1))
  size = decisions._place('a').stat().st_size
  monkeypatch.setattr(decisions, 'MOST_BYTES', size + size // 2)
  decisions.keep('b', _OUTCOME)
  assert [path.stem for path in folder.iterdir()] == ['b']


def test_a_folder_that_cannot_be_written_costs_one_line(tmp_path, monkeypatch,
                                                        warnings):
  (tmp_path / 'file').write_text('')
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path / 'file'))
  decisions.keep('k', _OUTCOME)
  assert len(warnings) == 1 and 'Not kept' in warnings[0]
  assert decisions.recall('k', _DEVICES) is None


def test_the_step_of_a_strategy_is_left_alone_before_the_optimizer_is_loaded(
    monkeypatch):
  monkeypatch.delattr(plugin, 'optimizer', raising=False)
  monkeypatch.setitem(sys.modules, 'gdp_grappler.plugin.optimizer', None)
  add = graph_defs.node('replica_1/add', 'NoOp', device=_DEVICES[0])
  step, other = (graph_defs.source(graph_defs.graph_def(node), devices=_DEVICES)
                 for node in (add, graph_defs.node('add', 'NoOp')))
  outcome = decisions.optimize(step, _SETTINGS)
  assert outcome.devices is None and 'left as it was' in outcome.message
  with pytest.raises(ImportError):
    decisions.optimize(other, _SETTINGS)


def test_a_program_with_one_device_gets_no_line_about_its_strategy():
  source = graph_defs.source(
      graph_defs.graph_def(graph_defs.node('replica_1/add', 'NoOp')),
      devices=_DEVICES[:1])
  assert decisions.optimize(source, _SETTINGS) == outcome_lib.Outcome(None, '')
