"""Keras models that one H100 has run: predicted steps beside measured ones.

Shares and host times were fitted to cnn, lstm and resnet50, with one choice by
the mlp; the transformer is held out.
"""

import pytest

from helpers import benchmarks

recorded_keras = benchmarks.module('recorded_keras')
_MOST = .15


@pytest.fixture(scope='module')
def steps():
  return {step.graph: step for step in recorded_keras.steps()}


def test_every_recorded_graph_is_fitted_or_kept_back(steps):
  assert set(steps) == {*recorded_keras.FITTED, *recorded_keras.KEPT_BACK}


@pytest.mark.parametrize('name',
                         recorded_keras.FITTED + recorded_keras.KEPT_BACK)
def test_steps_in_a_row_and_alone(steps, name):
  step = steps[name]
  assert [step.predicted_s] * 2 == pytest.approx(
      [step.measured_s, step.alone_s], rel=_MOST)


def test_rows_are_what_json_has(steps):
  rows = {row['graph']: row for row in recorded_keras.rows()}
  assert set(rows) == set(steps)
  for name, row in rows.items():
    assert row['predicted_s'] == steps[name].predicted_s
    assert row['measured_s'] == steps[name].measured_s
