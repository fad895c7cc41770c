"""What Keras' functions say of themselves; what they do is in `e2e`."""

import pytest

from gdp_grappler.plugin.fitting import keras_function


@pytest.fixture(name='said')
def _said(monkeypatch):
  lines = []
  monkeypatch.setattr(keras_function.notices, 'say', lines.append)
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


@pytest.mark.parametrize('names, is_on', [
    (['/device:CPU:0', '/device:GPU:0'], False),
    (['/device:CPU:0', '/device:GPU:0', '/device:GPU:1'], True),
])
def test_with_one_gpu_it_is_the_function_itself(said, monkeypatch, names,
                                                is_on):
  monkeypatch.setattr(keras_function.devices, 'names', lambda: names)
  assert bool(keras_function._with_choice(True)) == is_on
  assert keras_function._with_choice(False) is None
  del said
