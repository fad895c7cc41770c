"""What Keras' functions say of themselves; what they do is in `e2e`."""

import pytest

from gdp_grappler.plugin.fitting import keras_function


@pytest.fixture(name='said')
def _said(monkeypatch):
  lines = []
  monkeypatch.setattr(keras_function.notices, 'say', lines.append)
  monkeypatch.setattr(keras_function.devices, 'tell_if_there_is_one',
                      lambda: False)
  return lines


def _explained(**kwargs):
  function = keras_function.KerasFunction(
      lambda step: step, 'fit of "model"',
      **{'eager': False, 'without_xla': False, **kwargs})
  function._explain()
  return function


def test_a_graph_that_the_pass_has_not_seen_is_explained(said):
  assert _explained().was_told
  assert said == [
      'fit of "model": left as it was: its graph has fewer than 16 ops, or was '
      'seen before'
  ]


def test_what_runs_op_by_op_is_explained(said):
  _explained(eager=True)
  line, = said
  assert 'run_eagerly=True' in line


def test_what_workers_run_later_is_for_the_pass_to_explain(said):
  """Once a fit on parameter servers was said to be too small."""
  assert _explained(scheduled=True).was_told
  assert not said
