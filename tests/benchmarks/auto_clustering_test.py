"""XLA clusters in placed steps: the program that measures them."""

import itertools

import pytest

from gdp_grappler import errors
from gdp_grappler.processes import calls
from helpers import benchmarks

auto_clustering = benchmarks.module('auto_clustering')


def test_each_way_has_a_process_of_its_own(monkeypatch):
  """A placed model shared a process with the same model unplaced."""
  called = []

  def call(function, *arguments, environment, **unused_options):
    called.append((function, *arguments, 'TF_XLA_FLAGS' in environment))
    return {'losses': [2., 1. + arguments[1]]}

  monkeypatch.setattr(calls, 'call', call)
  rows = auto_clustering._rows('a:model')
  assert called == [('benchmarks.auto_clustering:measure', 'a:model', with_xla,
                     option, with_xla)
                    for with_xla, option in itertools.product((False, True), (
                        False, auto_clustering._OPTION))]
  assert [(row['xla'], row['losses']) for row in rows] == [(False, 0.),
                                                           (False, 0.),
                                                           (True, 1.),
                                                           (True, 1.)]


def test_a_model_that_cannot_be_trained_is_named(monkeypatch):

  def call(*unused_args, **unused_options):
    raise calls.CallError('ValueError: no')

  monkeypatch.setattr(calls, 'call', call)
  with pytest.raises(errors.MeasurementError, match='a:model cannot be .* no'):
    auto_clustering._rows('a:model')
