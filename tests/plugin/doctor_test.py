"""Findings of the doctor about incomplete installations."""

import sys

import pytest

from gdp_grappler import errors
from gdp_grappler import native
from gdp_grappler.cluster import nvml
from gdp_grappler.plugin import doctor
from helpers import forked_calls

_SOUND = {
    'logical': ['CPU:0', 'CPU:1'], 'gpus': ['GPU:0', 'GPU:1'], 'hook': True,
    'used': ['CPU:0', 'CPU:1']
}


@pytest.fixture(autouse=True)
def _no_driver(monkeypatch):
  """Hides the cards of this machine. Tests say which cards a driver has."""
  monkeypatch.setattr(nvml, 'installed', nvml.NoCards)


def _states(findings):
  return {finding.what: finding.state for finding in findings}


@pytest.mark.parametrize('option, gpus, state, said', [
    ('', 2, doctor.NOTE, 'as without'),
    ('0', 2, doctor.NOTE, 'as without'),
    ('on', 2, doctor.BAD, 'neither 0, 1 nor'),
    ('1', 0, doctor.NOTE, 'one device'),
    ('1', 1, doctor.NOTE, 'as without this package: this program has one GPU'),
    ('{"may_round": true}', 1, doctor.GOOD, ', over the CPU and 1 GPU;'),
    ('1', 2, doctor.GOOD, 'first steps as they were, then placed, its variables'
     ' moved, and keeps what is faster, over the CPU and 2 GPUs;'),
    ('{"guard": false}', 2, doctor.GOOD,
     'is placed, its variables moved before the first step, over the CPU'),
    ('{"guard": false, "move_variables": false}', 2, doctor.GOOD,
     'is placed, over the CPU'),
    ('{"mode": "report"}', 2, doctor.GOOD, 'would be placed'),
    ('{"mode": "report", "cluster": "2xP100"}', 0, doctor.GOOD,
     'would be placed on "2xP100", which is only reported'),
])
def test_what_the_next_fit_will_do(monkeypatch, option, gpus, state, said):
  monkeypatch.setenv('GDP_PLACEMENT', option)
  monkeypatch.setattr(doctor.devices.scopes, 'were_used', lambda: False)
  finding = doctor._next_fit(gpus)
  assert (finding.what, finding.state) == ('next fit', state)
  assert said in finding.detail
  assert (state == doctor.GOOD) == (not finding.remedy)


def test_a_plugin_that_the_user_keeps_out_is_told(monkeypatch):
  """Once all was well: gdp sets GDP_DISABLE itself, and hid the user's."""
  monkeypatch.setenv('GDP_PLACEMENT', '1')
  monkeypatch.setattr(doctor.environment, '_USERS_DISABLE', '1')
  finding = doctor._next_fit(2)
  assert finding.state == doctor.NOTE
  assert finding.detail.endswith('GDP_DISABLE keeps the plugin out')


@pytest.mark.parametrize('option, stays', [('1', True),
                                           ('{"may_round": true}', False),
                                           ('{"plan": {"a": "CPU:0"}}', False)])
def test_it_says_whether_float_arithmetic_stays(monkeypatch, option, stays):
  monkeypatch.setenv('GDP_PLACEMENT', option)
  detail = doctor._next_fit(2).detail
  assert ('float arithmetic of GPUs stays there' in detail) == stays


@pytest.mark.parametrize('option, cards, parts, state, said', [
    ('1', 1, 2, doctor.GOOD, 'over the CPU and 2 logical GPUs;'),
    ('1', 2, 2, doctor.GOOD, 'over the CPU and 4 logical GPUs;'),
    ('1', 0, 1, doctor.NOTE, 'one device'),
    ('', 1, 2, doctor.NOTE, 'is not placed, and runs on a part of GPU:0'),
])
def test_what_the_next_fit_will_do_on_cards_in_parts(monkeypatch, option, cards,
                                                     parts, state, said):
  """Once the doctor said that it runs as without the package."""
  monkeypatch.setenv('GDP_PLACEMENT', option)
  monkeypatch.setattr(doctor.devices.scopes, 'were_used', lambda: False)
  finding = doctor._next_fit(cards, parts)
  assert finding.state == state and said in finding.detail


@pytest.mark.parametrize('variable, option, expected', [
    ('', '', None),
    ('', '1', None),
    ('', '{"split": 2}', 2),
    ('3', '{"split": 2}', 3),
    ('auto', '', 'auto'),
    ('', 'wrong', None),
])
def test_what_cards_are_to_be_cut_into(monkeypatch, variable, option, expected):
  monkeypatch.setenv('GDP_SPLIT', variable)
  monkeypatch.setenv('GDP_PLACEMENT', option)
  assert doctor._split() == expected


def test_a_wrong_split_is_bad(monkeypatch):
  monkeypatch.setenv('GDP_SPLIT', '9')
  monkeypatch.setattr(doctor.worker_process, 'WorkerProcess', _Dies)
  found = {f.what: f for f in doctor._in_a_fresh_process()}
  assert found['split'].state == doctor.BAD
  assert found['split'].detail.startswith('GDP_SPLIT is ignored: ')


class _Dies:
  """A process that the doctor cannot start."""

  def __init__(self, *_):
    pass

  def receive(self, timeout_s):
    raise doctor.worker_process.Died(f'nothing in {timeout_s} s')

  def close(self):
    pass


@pytest.fixture(name='calls', scope='module')
def _calls():
  """Calls in forks of a process that has imported TensorFlow."""
  with forked_calls.Calls(['tensorflow'], {'GDP_PLACEMENT': '1'}) as result:
    yield result


@pytest.mark.e2e
@pytest.mark.parametrize('split, memory_bytes, cut, fit', [
    (2, 16 << 30,
     (doctor.GOOD, 'GPU:0 cut into 2 logical GPUs each, of 8192 MiB'),
     'over the CPU and 2 logical GPUs'),
    ('auto', 6 << 30,
     (doctor.NOTE, "GPUs are not split: each of 2 parts would have 3072 MiB; "
      "'split': 2 splits them anyway"), 'runs as without this package'),
    (2, None,
     (doctor.NOTE, 'GPUs are not split: the memory of /physical_device:GPU:0 '
      'is unknown (no NVML); use tf.config.set_logical_device_configuration'),
     'runs as without this package'),
])
def test_it_knows_what_becomes_of_a_card(calls, split, memory_bytes, cut, fit):
  """Once the doctor ignored `split`, and counted whole cards."""
  found = calls.call('helpers.child_functions:doctor_of_gpus', '1xP100', split,
                     memory_bytes, timeout_s=120)
  assert found['split'] == cut
  assert fit in found['next fit'][1]
  assert (found['devices'][0] == doctor.GOOD) == (cut[0] == doctor.GOOD)


@pytest.mark.parametrize('changes, bad', [
    ({},
     {'hook': doctor.GOOD, 'placement': doctor.GOOD, 'devices': doctor.GOOD}),
    ({'gpus': ['GPU:0']}, {'devices': doctor.NOTE}),
    ({'gpus': []}, {'devices': doctor.NOTE}),
    ({'used': ['CPU:0']}, {'placement': doctor.BAD}),
    ({'hook': False}, {'hook': doctor.BAD}),
])
def test_what_a_fresh_process_reports(changes, bad):
  found = list(doctor._read_report(_SOUND | changes, ['[gdp] why']))
  assert bad.items() <= _states(found).items()
  for finding in found:
    assert (finding.state == doctor.GOOD) == (not finding.remedy)
    if finding.state == doctor.BAD:
      assert '[gdp] why' in finding.detail
  assert ('placement' in _states(found)) == (_SOUND | changes)['hook']


@pytest.mark.parametrize('visible, state', [(None, doctor.BAD),
                                            ('0', doctor.BAD),
                                            ('-1', doctor.NOTE)])
def test_a_card_that_tensorflow_does_not_see(monkeypatch, visible, state):
  """Once this was no failure, but a note that nothing can get faster."""
  source = nvml.NoCards()
  monkeypatch.setattr(source, 'cards', lambda: [nvml.CardFacts('Tesla T4')])
  monkeypatch.setattr(nvml, 'installed', lambda: source)
  monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
  if visible is not None:
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
  found = {f.what: f for f in doctor._read_report(_SOUND | {'gpus': []}, [])}
  finding = found['devices']
  bad = state == doctor.BAD
  assert finding.state == state and ('Tesla T4' in finding.detail) == bad
  assert ('tensorflow[and-cuda]' in finding.remedy) == bad
  seen = doctor._read_report(_SOUND, [])
  assert _states(seen)['devices'] == doctor.GOOD


def test_an_error_of_cuda_is_not_mended_by_another_installation():
  """Once the doctor told the user to reinstall this package."""

  def failing():
    raise RuntimeError('cudaSetDevice() on GPU:0 failed')
    yield

  finding, = doctor._guarded('calibration', failing)
  assert 'tensorflow[and-cuda]' in finding.remedy


def test_devices_are_counted_among_those_that_were_tried():
  report = _SOUND | {'logical': ['CPU:0', 'CPU:1', 'CPU:2']}
  found = {f.what: f for f in doctor._read_report(report, [])}
  assert found['placement'].detail.endswith('on 2 of 3 logical CPUs')


def test_one_gpu_is_told_what_may_leave_it():
  found = {
      f.what: f for f in doctor._read_report(_SOUND | {'gpus': ['GPU:0']}, [])
  }
  assert 'float arithmetic stays on it' in found['devices'].remedy
  assert 'left as they are' not in found['devices'].remedy


def test_a_check_that_fails_is_a_finding_and_the_others_go_on(monkeypatch):
  """Once an error was a traceback, and ended all further checks."""
  checks = ('_tensorflow', '_libraries', '_loaders', '_other_plugins',
            '_environment', '_in_a_fresh_process', '_calibration', '_xla')

  def failing(*_):
    yield doctor.Finding(doctor.GOOD, 'before', 'it fails')
    raise PermissionError('a folder\nof sys.path')

  for check in checks:
    monkeypatch.setattr(doctor, check, failing)
  monkeypatch.setattr(
      doctor, '_policy',
      lambda policy: iter([doctor.Finding(doctor.GOOD, 'policy', policy)]))
  *found, last = doctor.examine('its folder')
  assert (last.what, last.detail) == ('policy', 'its folder')
  good, bad = found[::2], found[1::2]
  assert [finding.what for finding in good] == ['before'] * len(checks)
  assert len({finding.what for finding in bad}) == len(checks)
  for finding in bad:
    assert finding.state == doctor.BAD and finding.remedy
    assert 'PermissionError: a folder of sys.path' in finding.detail


@pytest.fixture
def loaders(tmp_path, monkeypatch):
  """Makes a folder of sys.path with plugins of given names."""
  monkeypatch.setattr(sys, 'path', [])
  monkeypatch.delenv('TF_PLUGGABLE_DEVICE_LIBRARY_PATH', raising=False)

  def make(folder, *names):
    plugins = tmp_path / folder / 'tensorflow-plugins'
    plugins.mkdir(parents=True)
    for name in names:
      (plugins / name).write_bytes(b'')
    sys.path.append(str(tmp_path / folder))
    return plugins

  return make


def test_a_folder_that_cannot_be_searched_has_no_loader(loaders):
  """Once such a folder in PYTHONPATH led to the advice to reinstall."""
  loaders('a', doctor._LOADER)
  sys.path.append('x' * 5000)
  assert _states(doctor._loaders()) == {'loader': doctor.GOOD}


def test_one_loader_is_good_none_and_two_are_bad(loaders):
  assert _states(doctor._loaders()) == {'loader': doctor.BAD}
  loaders('a', doctor._LOADER, 'readme.txt')
  assert _states(doctor._loaders()) == {'loader': doctor.GOOD}
  loaders('b', doctor._LOADER)
  finding, = doctor._loaders()
  assert finding.state == doctor.BAD and 'more than once' in finding.detail


def test_a_loader_by_environment_is_the_same_one(loaders, monkeypatch):
  folder = loaders('a', doctor._LOADER)
  monkeypatch.setenv('TF_PLUGGABLE_DEVICE_LIBRARY_PATH',
                     str(folder / doctor._LOADER))
  assert _states(doctor._loaders()) == {'loader': doctor.GOOD}


def test_other_plugins_are_worth_a_note(loaders):
  loaders('a', doctor._LOADER, 'readme.txt')
  assert _states(
      doctor._other_plugins()) == {'other TensorFlow plugins': doctor.GOOD}
  loaders('b', 'libother.so')
  finding, = doctor._other_plugins()
  assert (finding.state, finding.detail) == (doctor.NOTE, 'libother.so')


@pytest.mark.parametrize('built, state', [('9.9.9', doctor.BAD),
                                          (None, doctor.BAD)])
def test_libraries_for_another_tensorflow(monkeypatch, built, state):

  def build():
    if built is None:
      raise errors.PluginError('no libraries')
    return built

  monkeypatch.setattr(native, 'built_for_tensorflow', build)
  finding, = doctor._tensorflow()
  assert finding.state == state and finding.remedy


@pytest.mark.parametrize('flags, state', [('', doctor.GOOD),
                                          ('--tf_xla_auto_jit=2', doctor.NOTE)])
def test_clustering_is_worth_a_note(monkeypatch, flags, state):
  """Once the note said that ops of clusters are not placed."""
  monkeypatch.setenv('TF_XLA_FLAGS', flags)
  finding, = doctor._xla()
  assert (finding.what, finding.state) == ('XLA', state)
  assert not flags or 'clusters of placed ops' in finding.detail


def test_variables_that_steer_are_shown(monkeypatch):
  assert not list(doctor._environment())
  monkeypatch.setenv('GDP_CAPTURE_DIR', '/x')
  finding, = doctor._environment()
  assert (finding.state, finding.what,
          finding.detail) == (doctor.NOTE, 'GDP_CAPTURE_DIR', '/x')
