"""Tests of `verify` and of `gdp verify`."""

import threading

import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.api import verify_programs
from gdp_grappler.api import verifying
from gdp_grappler.bin import gdp
from gdp_grappler.processes import calls


@pytest.mark.e2e
def test_three_programs_are_really_placed():
  verification = gdp_grappler.verify(['CPU'])
  assert verification.works, str(verification)
  assert [p.program for p in verification.programs
         ] == ['keras_fit', 'training_loop', 'session']
  assert all('CPU:0 and CPU:1' in p.detail for p in verification.programs)


def _answers(monkeypatch, answer, has_gpu=False):

  def call(function, kind='', **options):
    if isinstance(answer, Exception):
      raise answer
    if function.endswith(':has_gpu'):
      return has_gpu
    hidden = options['environment'].get('CUDA_VISIBLE_DEVICES') == '-1'
    assert hidden == (kind == 'CPU')
    return answer(function) if kind == 'CPU' else _on_gpu(answer(function))

  monkeypatch.setattr(calls, 'call', call)


def _on_gpu(runs):
  """Turns results of CPUs into results of GPUs, which have other losses."""
  (losses, _), (placed, devices) = runs
  names = [device.replace('CPU', 'GPU') for device in devices]
  return (([loss + 1e-3 for loss in losses], ['GPU:0']),
          ([loss + 1e-3 for loss in placed], ['CPU:0', *names]))


_GOOD = ([1., .5], ['CPU:0']), ([1., .5], ['CPU:0', 'CPU:1'])


def test_all_is_well(monkeypatch, capsys):
  _answers(monkeypatch, lambda function: _GOOD)
  assert gdp.run(['verify']) == 0
  out = capsys.readouterr().out
  assert out.count('its 2 losses are the same') == 3
  assert out.endswith('Placement works here.\n')


def test_kinds_of_devices_are_compared_with_themselves(monkeypatch):
  _answers(monkeypatch, lambda function: _GOOD, has_gpu=True)
  verification = gdp_grappler.verify()
  assert verification.works
  assert [p.kind for p in verification.programs] == ['CPU'] * 3 + ['GPU'] * 3
  assert 'on GPUs: really ran on CPU:0 and GPU:0 and GPU:1' in str(verification)
  assert [p.kind for p in gdp_grappler.verify(['GPU']).programs] == ['GPU'] * 3


def test_programs_side_by_side_share_a_small_card(monkeypatch):
  """Once each program reserved the memory that libraries needed."""
  grows = []

  def call(*unused_arguments, environment, **unused_options):
    grows.append(environment.get('TF_FORCE_GPU_ALLOW_GROWTH'))
    return _on_gpu(_GOOD)

  monkeypatch.setattr(calls, 'call', call)
  assert gdp_grappler.verify(['GPU']).works
  assert grows == ['true'] * 3


def test_one_gpu_and_the_cpu_is_not_placed(monkeypatch):
  stayed = _GOOD[0], ([1., .5], ['CPU:0'])
  _answers(monkeypatch, lambda function: stayed)
  verification = gdp_grappler.verify(['GPU'])
  assert not verification.works
  assert 'stayed on CPU:0, GPU:0' in str(verification)


def test_another_kind_is_refused(capsys):
  with pytest.raises(errors.GdpError, match='Give CPU or GPU'):
    gdp_grappler.verify(['TPU'])
  with pytest.raises(SystemExit):
    gdp.run(['verify', '--on=TPU'])
  assert "invalid choice: 'TPU'" in capsys.readouterr().err


def test_a_gpu_is_cut_in_two(monkeypatch):
  """Checks the calls of TensorFlow, because the test has no GPU."""
  told = {}
  config = verify_programs.tf.config
  monkeypatch.setattr(config, 'list_physical_devices',
                      lambda kind: [f'first {kind}', f'second {kind}'])
  monkeypatch.setattr(config, 'set_visible_devices',
                      lambda *devices: told.update(visible=devices))
  monkeypatch.setattr(config, 'set_logical_device_configuration',
                      lambda device, parts: told.update({device: parts}))
  monkeypatch.setattr(config.experimental, 'enable_op_determinism',
                      lambda: told.update(deterministic=True))
  verify_programs.make_devices('GPU')
  assert told['visible'] == ('first GPU', 'GPU') and told['deterministic']
  assert len(told['first GPU']) == 2 and 'first CPU' not in told
  assert all(part.memory_limit for part in told['first GPU'])
  told.clear()
  verify_programs.make_devices('CPU')
  assert [*told] == ['first CPU'] and len(told['first CPU']) == 2


def test_a_session_has_two_devices_of_a_kind():
  config = verify_programs.session_config('GPU')
  virtual, = config.gpu_options.experimental.virtual_devices
  assert len(virtual.memory_limit_mb) == 2
  assert config.gpu_options.visible_device_list == '0'
  assert verify_programs.session_config('CPU').device_count == {'CPU': 2}


@pytest.mark.parametrize('placed, said', [
    (([1., .6], ['CPU:0', 'CPU:1']), 'its losses became 1, 0.6'),
    (([1.], ['CPU:0', 'CPU:1']), 'its losses became 1 where'),
    (([1., float('nan')], ['CPU:0', 'CPU:1']), 'became 1, nan'),
    (([1., .5], ['CPU:0']), 'its ops stayed on CPU:0'),
    (([1., .5], []), 'its ops stayed on no device'),
])
def test_what_is_wrong_is_said(monkeypatch, capsys, placed, said):
  _answers(
      monkeypatch, lambda function: (_GOOD[0], placed)
      if 'session' in function else _GOOD)
  assert gdp.run(['verify']) == 1
  out = capsys.readouterr().out
  assert said in out and '1 of 3 programs failed' in out


def test_a_program_that_dies_is_told(monkeypatch):
  _answers(monkeypatch, calls.CallError('killed by signal 9'))
  verification = verifying.verify()
  assert not verification.works
  assert 'it failed: killed by signal 9' in str(verification)
  assert '<p>' in verification._repr_html_()
  assert repr(verification).startswith('<Verification ')


def test_ctrl_c_ends_the_programs(monkeypatch):
  """Once the command waited for its programs, for up to ten minutes."""
  running, said, call = threading.Semaphore(0), [], calls.call

  def interrupted(function, unused_kind, *, started, **unused_options):
    if function.endswith(':keras_fit'):
      running.acquire()
      running.acquire()
      raise KeyboardInterrupt

    def noted(process):
      started(process)
      running.release()

    try:
      call('helpers.child_functions:hang', timeout_s=20, started=noted)
    except calls.CallError as error:
      said.append(str(error))
      raise

  monkeypatch.setattr(calls, 'call', interrupted)
  with pytest.raises(KeyboardInterrupt):
    gdp_grappler.verify(['CPU'])
  assert len(said) == 2 and all('was killed' in line for line in said)


def test_no_kind_is_not_a_success():
  """Once the result for no program was that placement works here."""
  with pytest.raises(
      errors.GdpError, match='no devices to verify placement on'
      '. Give CPU or GPU'):
    gdp_grappler.verify([])


def test_a_kind_may_be_a_text(monkeypatch):
  """Once the error was that there are no devices called "C"."""
  _answers(monkeypatch, lambda function: _GOOD)
  assert [p.kind for p in gdp_grappler.verify('CPU').programs] == ['CPU'] * 3
