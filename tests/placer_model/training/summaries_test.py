"""TensorBoard events."""

import dataclasses
import resource
import types

import pytest

from gdp_grappler import errors
from helpers import tensorboard_events
from placer_model.training import summaries
from placer_model.training import trainer

_REPORT = trainer.Report(iteration=3, reward=-1.5, valid_share=0.5,
                         sample_step_time_s=float('inf'), best_step_time_s=0.25,
                         evaluations=7, entropy=0.5, kl=0.125,
                         clip_fraction=0.0, loss=2.0, decisions=(5, 0, 9))

# A task and a trainer that knows no placement yet.
_NOTHING_FOUND = (None,
                  types.SimpleNamespace(state=types.SimpleNamespace(
                      best_decisions=None)))


def _scalars(directory):
  return {
      tag: (step, float(array))
      for tag, (step, array) in tensorboard_events.values(directory).items()
      if not array.shape
  }


def test_every_finite_figure_is_a_scalar(tmp_path):
  writer = summaries.Summaries(tmp_path, *_NOTHING_FOUND)
  writer.write(_REPORT)
  writer.close()
  found = _scalars(tmp_path)
  assert set(found) == {f.name for f in dataclasses.fields(_REPORT)
                       } - {'iteration', 'sample_step_time_s', 'decisions'}
  assert found['reward'] == (3, -1.5)
  assert found['best_step_time_s'] == (3, 0.25)


def test_decisions_are_a_histogram(tmp_path):
  writer = summaries.Summaries(tmp_path, *_NOTHING_FOUND)
  writer.write(_REPORT)
  writer.close()
  step, histogram = tensorboard_events.values(tmp_path)['decisions']
  assert step == 3
  assert histogram.tolist() == [[-.5, .5, 5], [.5, 1.5, 0], [1.5, 2.5, 9]]


def test_full_disk_is_one_clear_error(tmp_path):
  writer = summaries.Summaries(tmp_path, *_NOTHING_FOUND)
  soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
  try:
    with pytest.raises(errors.GdpError, match='Free some space') as info:
      for _ in range(100):
        writer.write(_REPORT)
      writer.close()
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
  assert '\n' not in str(info.value)
  assert str(tmp_path) in str(info.value)
