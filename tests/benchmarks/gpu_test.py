"""`python -m benchmarks.gpu`, dry: logical CPUs stand for a card."""

import json
import os
import signal

import pytest
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.eager import context

from gdp_grappler import deadlines
from helpers import benchmarks
from helpers import calibrations

page = benchmarks.module('gpu.page')
parts = benchmarks.module('gpu.parts')
_DRY = ('--device=CPU', '--out_dir=out', '--models=models:branches',
        '--placed=models:branches', '--profiled=branches', '--steps=2',
        '--compared=models:branches', '--ways=plain,split2',
        '--without_programs')


def _setting(folder, **changes):
  return parts.Setting(
      **{
          'device': 'GPU', 'out_dir': folder, 'models': ('a:cnn',), 'placed': (
              'a:cnn',), 'profiled': ('cnn',), **changes
      })


def _left(seconds):
  return deadlines.Deadline(seconds, lambda: 0.)


@pytest.mark.e2e
def test_all_parts_run_and_are_not_run_again(tmp_path):
  done = benchmarks.run('gpu', *_DRY, '--calibrate_s=9', folder=tmp_path)
  assert done.code == 0, done.stderr
  assert 'a dry run over logical CPUs' in done.stdout
  for title in ('What the host pays', 'Steps on one device', 'Profiles',
                'Losses over CPU', 'One card, in several ways'):
    assert f'## {title}' in done.stdout
  assert '| branches | equal to the last bit |' in done.stdout
  assert 'Not finished' not in done.stdout
  assert '| branches | without XLA | ' in done.stdout
  out = tmp_path / 'out'
  assert (out / 'README.md').read_text() in done.stdout
  step = json.loads((out / 'steps.json').read_text())['branches']
  predicted = json.loads((out / 'predictions.json').read_text())['branches']
  assert step['step_s'] > 0 and (out / 'graphs/branches.pb').exists()
  assert set(predicted) == {'before_s', 'after_s'}
  assert all(seconds > 0 for seconds in predicted.values())


@pytest.mark.e2e
def test_without_a_card_it_is_one_line(tmp_path):
  done = benchmarks.run('gpu', '--out_dir=out', folder=tmp_path)
  assert done.code == 2 and not done.stdout
  line = done.stderr.strip().splitlines()[-1]
  assert line.startswith('benchmarks.gpu: error: TensorFlow sees no GPU here')
  assert not (tmp_path / 'out').exists()


def test_a_part_is_done_when_its_file_has_all_that_it_wants(tmp_path):
  setting = _setting(tmp_path, models=('a:cnn', 'a:mlp'))
  part = parts.steps(setting)
  assert not part.is_done(tmp_path)
  path = tmp_path / 'steps.json'
  path.write_text('{"cnn": {}}')
  assert not part.is_done(tmp_path)
  path.write_text('{"cnn": {}, "mlp": {}}')
  assert part.is_done(tmp_path)
  path.write_text('{')
  assert not part.is_done(tmp_path)
  assert not parts.predictions(setting).is_done(tmp_path)


def test_a_program_is_done_when_its_exit_code_is_kept(tmp_path):
  part = parts.program('doctor')
  assert not part.is_done(tmp_path)
  (tmp_path / 'doctor.rc').write_text('1\n')
  assert part.is_done(tmp_path)


def test_commands_are_those_of_a_user(tmp_path):
  setting = _setting(tmp_path)
  assert parts.calibrate(setting).command[:3] == ('-m', 'gdp_grappler.bin.gdp',
                                                  'calibrate')
  assert '--devices=gpu' in parts.profile(setting, 'cnn').command
  streams = parts.streams(setting)
  assert streams.command[1] == 'benchmarks.gpu.streams'
  assert streams.wants[:2] == ('cnn.whole', 'cnn.split_2')


def test_levers_are_options_of_tensorflow(monkeypatch):
  monkeypatch.setenv('TF_GPU_THREAD_MODE', 'global')
  streams = benchmarks.module('gpu.streams')
  for way, said in (('split_2_copy_streams', 'num_dev_to_dev_copy_streams: 2'),
                    ('split_2_merged_streams',
                     'merge_device_to_device_stream: true')):
    options = config_pb2.GPUOptions()
    streams.WAYS[way][1](options)
    assert said in str(options)
  streams.private_threads(None)
  assert os.environ['TF_GPU_THREAD_MODE'] == 'gpu_private'


def test_levers_are_in_what_gpus_are_made_with(monkeypatch):
  streams = benchmarks.module('gpu.streams')
  monkeypatch.setattr(context.Context, '_compute_gpu_options',
                      context.Context._compute_gpu_options)
  streams.set_lever(streams.copy_streams)
  options = context.context()._compute_gpu_options()
  assert options.experimental.num_dev_to_dev_copy_streams == 2


def test_models_on_one_card_are_done_when_all_ways_are(tmp_path):
  setting = _setting(tmp_path, compared=('a:cnn',), ways=('plain', 'split2'),
                     deadline=_left(100.))
  part = parts.one_card(setting)
  assert '--time_budget_s=50' in part.command
  assert part.wants == ('cnn.plain', 'cnn.split2')
  dry = parts.one_card(_setting(tmp_path, device='CPU'))
  assert 'small_mixture.xla' in dry.wants
  assert not any('split' in name for name in dry.wants)
  (tmp_path / 'one_card').mkdir()
  path = tmp_path / 'one_card' / 'one_card.json'
  path.write_text('{"cnn.plain": {}}')
  assert not part.is_done(tmp_path)
  path.write_text('{"cnn.plain": {}, "cnn.split2": {}}')
  assert part.is_done(tmp_path)


def test_no_part_begins_when_time_is_out(tmp_path):
  from benchmarks.gpu import __main__ as program
  left_out = []
  started = program._started([parts.program('doctor')],
                             _setting(tmp_path, deadline=_left(0.)), left_out)
  assert not started and left_out == ['doctor']


def test_tables_of_what_is_there(tmp_path):
  calibrations.make().save(tmp_path / 'calibration.json')
  (tmp_path / 'steps.json').write_text(
      json.dumps({
          'cnn': {
              'graph': 'g.pb', 'step_s': .02, 'alone_s': .021, 'first_s': 7.
          }, 'mlp': {'error': 'ResourceExhaustedError: OOM'}
      }))
  (tmp_path / 'predictions.json').write_text(
      json.dumps({'cnn': {'before_s': .01, 'after_s': .022}}))
  (tmp_path / 'losses.json').write_text(
      json.dumps({
          'cnn': {
              'equal': True, 'was_placed': True,
              'said': 'step: 9 ops placed by random; predicted step 1 ms'
          }, 'mlp': {'equal': False, 'was_placed': True, 'said': 'placed'}
      }))
  (tmp_path / 'streams.json').write_text(
      json.dumps({
          'cnn.whole': {'step_s': .02}, 'cnn.split_2': {'step_s': .015},
          'mlp.split_2': {'error': 'OOM'}
      }))
  (tmp_path / 'too_big.json').write_text(
      json.dumps({
          'off': {'error': 'OOM when\nallocating'},
          'on': {'losses': [2., 1.5], 'peak_bytes': [4.5e9, 4e9]}
      }))
  (tmp_path / 'verify.rc').write_text('0\n')
  (tmp_path / 'verify.log').write_text('one\nAll is well.\n')
  text = page.text(_setting(tmp_path), ['doctor'])
  assert 'NVIDIA H100 80GB HBM3, driver 580.1' in text
  assert '*measured*, one run' in text and 'dry run' not in text
  assert '| cnn | 20.00 | 21.00 | 10.00 (-50%) | 22.00 (+10%) | 7 |' in text
  assert '| mean of absolute errors |  |  | 50% | 10% |  |' in text
  assert '| mlp | ResourceExhaustedError: OOM |' in text
  assert ('| cnn | equal to the last bit | step: 9 ops placed by random |'
          in text)
  assert '| mlp | differ | placed |' in text
  assert '| model | whole | split 2 |' in text
  assert '| cnn | 20.00 | 15.00 |' in text
  assert '| mlp | - | OOM |' in text
  assert '| gdp verify | 0 | one / All is well. |' in text
  assert '| off | OOM when allocating | - |' in text
  assert '| on | trained, loss 1.5 | 4.50 and 4.00 |' in text
  assert 'Not finished: doctor.' in text


def test_ways_that_were_not_measured_are_measured_by_the_next_run(
    tmp_path, monkeypatch):
  """The part was done as soon as each model had been measured in one way."""
  streams = benchmarks.module('gpu.streams')
  setting = _setting(tmp_path, split=('a:cnn', 'a:mlp'))
  begun = []

  def run(command, **unused_options):
    way = command[4]
    begun.append(way)
    if len(begun) < 4:
      (tmp_path / f'streams_{way}.json').write_text('{"cnn": {}, "mlp": {}}')

  monkeypatch.setattr(streams.subprocess, 'run', run)
  arguments = parts.streams(setting).command[2:]
  streams.main(*arguments)
  assert set(begun) == set(streams.WAYS)
  assert not parts.streams(setting).is_done(tmp_path)
  for way in streams.WAYS:
    (tmp_path / f'streams_{way}.json').write_text('{"cnn": {}, "mlp": {}}')
  streams.main(*arguments)
  assert parts.streams(setting).is_done(tmp_path)


def test_models_get_no_more_time_than_is_left(tmp_path):
  """A part that began at the last moment took minutes."""
  for left_s, given in ((50., '50'), (500., '110')):
    setting = _setting(tmp_path, deadline=_left(left_s))
    for make in (parts.steps, parts.losses, parts.streams):
      assert given in make(setting).command


def test_a_part_is_stopped_with_its_children_and_is_not_done(tmp_path):
  """Its children lived on, and the part counted as done for good."""
  pipe = tmp_path / 'pipe'
  os.mkfifo(pipe)
  child = f'import time; kept = open({str(pipe)!r}, "w"); time.sleep(999)'
  parent = ('import subprocess, sys; '
            f'subprocess.run([sys.executable, "-c", {child!r}])')
  part = parts.Part('doctor', ('-c', parent))
  setting = _setting(tmp_path, deadline=_left(0.))
  process = parts.start(part, setting)
  with pipe.open() as stream:  # Waits for the child.
    assert parts.finish(part, process, setting) == -signal.SIGKILL
    assert not stream.read()  # Waits for the end of the child.
  assert not part.is_done(tmp_path)
