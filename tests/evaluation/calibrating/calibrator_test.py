"""A CPU is calibrated as if it were a card: every line runs, in a process."""

import dataclasses

import pytest

from gdp_grappler import errors
from gdp_grappler.evaluation.calibrating import calibrator
from gdp_grappler.evaluation.calibrating import steps
from gdp_grappler.processes import messages

_ALL = steps.all_steps()
_STEPS = tuple(
    step for step in _ALL
    if step.kind is None or step.name in ('Sum', 'CudnnRNNV3', 'Mul'))


def _options(folder, **changes):
  return calibrator.CalibrationOptions(
      **{
          'budget_s': 600., 'device_type': 'CPU', 'cache_dir': folder,
          'steps': _STEPS, **changes
      })


@pytest.fixture(name='measured', scope='module')
def _measured(tmp_path_factory):
  folder = tmp_path_factory.mktemp('cache')
  said = []
  return calibrator.calibrate(_options(folder), said.append), said, folder


def test_figures_and_kernels_are_measured(measured):
  found, _, _ = measured
  assert found.device_type == 'CPU' and found.card and not found.driver
  assert set(found.done) == {step.name for step in _STEPS}
  # What noise on a busy machine may hide is said to be left out.
  hidden = {line.split(':')[0] for line in found.left_out}
  for name in ('empty_step_s', 'launching_op_s', 'other_op_s', 'hop_s',
               'busy_hop_s', 'host_hop_s', 'busy_host_hop_s', 'copy_issue_s',
               'side_by_side_op_s', 'side_by_side_devices'):
    assert found.figure(name) or name in hidden, name
  assert {kernel.op_type for kernel in found.kernels} <= {'Sum', 'Mul'}
  assert all(kernel.seconds > 0 for kernel in found.kernels)


def test_what_has_no_kernel_is_left_out_and_said(measured):
  found, _, _ = measured
  assert any(
      line.startswith('CudnnRNNV3') and line.endswith('no kernel')
      for line in found.left_out)


def test_what_is_known_is_not_measured_again(measured):
  found, _, folder = measured
  said = []
  again = calibrator.calibrate(_options(folder), said.append)
  assert again.kernels == found.kernels and again.figures == found.figures
  assert any('is calibrated' in line for line in said)


def test_without_time_the_rest_is_left_out_and_the_next_run_goes_on(tmp_path):
  first = calibrator.calibrate(_options(tmp_path, budget_s=1e-3))
  assert not first.done
  assert set(first.left_out_for_time) == {
      f'{step.name}: no time left' for step in _STEPS
  }
  said = []
  some = dataclasses.replace(_options(tmp_path), steps=_STEPS[:1])
  then = calibrator.calibrate(some, said.append)
  assert then.done == ('ops',) and not then.left_out_for_time


def test_a_step_that_failed_is_measured_by_the_next_run(measured):
  """A transient failure once counted as done until --refresh."""
  found, _, folder = measured
  options, last = _options(folder), _STEPS[-1].name
  failed = calibrator._with(dataclasses.replace(found, done=found.done[:-1]),
                            last, messages.Failure('out of memory'))
  assert last not in failed.done
  assert f'{last}: out of memory' in failed.left_out
  assert not calibrator._with_rest(failed, options).left_out_for_time
  # Earlier releases kept such a step as done.
  for kept in (failed, dataclasses.replace(failed, done=found.done)):
    again = calibrator._without_failures(kept, options)
    assert [step.name for step in calibrator._missing(again, options)] == [last]
    assert again.left_out == found.left_out


def test_without_a_card_it_says_what_is_missing(tmp_path):
  with pytest.raises(errors.MeasurementError,
                     match='sees no GPU here') as caught:
    calibrator.calibrate(_options(tmp_path, device_type='GPU'))
  assert '--calibration=FILE' in str(caught.value)


def test_the_card_in_question_is_the_first_that_the_process_sees(monkeypatch):
  visible = calibrator._visible
  monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
  assert not visible(calibrator.CalibrationOptions())
  assert visible(calibrator.CalibrationOptions(number=2)) == {
      'CUDA_VISIBLE_DEVICES': '2,0'
  }
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '4,5')
  assert visible(calibrator.CalibrationOptions(number=1)) == {
      'CUDA_VISIBLE_DEVICES': '5,4'
  }
  # An empty variable once counted as one card.
  for given, cards in (('4,5', 2), ('', 0)):
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', given)
    with pytest.raises(errors.MeasurementError, match=f'leaves {cards}'):
      visible(calibrator.CalibrationOptions(number=2))
