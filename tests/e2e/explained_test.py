"""For each call of Keras, a line says why its step was placed or was not."""

import pytest

from helpers import fresh
from helpers import programs

pytestmark = pytest.mark.e2e

results = programs.results('explained.py')


def test_xla_that_keras_chose_is_held_back(results):
  auto = results['auto']
  assert auto['compiled'] == [True, False, True]
  assert auto['kept']
  first, second = auto['losses']
  assert second == pytest.approx(first, rel=1e-5)
  said = [l for l in auto['lines'] if 'runs without XLA' in l]
  assert said == [
      '"net": runs without XLA, as with jit_compile=False, while '
      'gdp_placement is on: XLA would make each step one op, which cannot be '
      'placed'
  ]
  assert any('placed by random' in line for line in auto['lines'])


def test_xla_that_the_user_chose_is_obeyed(results):
  said = [l for l in results['explicit'] if not l.startswith('initial values')]
  assert [line.split(':')[0] for line in said
         ] == [f'{call} of "net"' for call in ('fit', 'evaluate', 'predict')]
  assert all('XLA compiles it to one op (jit_compile=True)' in l for l in said)


def test_compiled_functions_are_told_of_once(results):
  line, = results['function']
  assert line.startswith('double: left as it was: XLA compiles it to one op')


def test_small_graphs_are_explained(results):
  line, = results['small']
  assert line.startswith(
      'predict of "small": left as it was: its graph has fewer than 16 ops and '
      'no pin, or was seen before and keeps its placement, or Grappler failed')


def test_every_call_has_its_line(results):
  lines = [
      l for l in results['every_call'] if not l.startswith('initial values')
  ]
  assert len(lines) >= 6
  assert all(
      'placed by random' in line or 'left as it was' in line for line in lines)


def test_methods_of_one_batch_are_named(results):
  """Lines about `train_on_batch` once said "fit of"."""
  lines = [
      l for l in results['one_batch'] if not l.startswith('initial values')
  ]
  assert [line.split(' of ')[0] for line in lines
         ] == ['train_on_batch', 'test_on_batch', 'predict_on_batch']


def test_a_map_of_no_layer_is_told_of_once(results):
  """Once each function without a layer of the map had a line."""
  line, = (l for l in results['misspelled'] if 'no op is in "absent"' in l)
  assert line.startswith('fit of "net": left as it was')


def test_callback_reports_every_epoch(results):
  for placed_ops, moved, predicted_s, measured_s in results['watched']:
    assert placed_ops > 50 and moved > 0
    assert predicted_s > 0 and measured_s > 0


def test_one_device_is_told_of_once():
  assert fresh.run('explained.py', 'one').results['every_call'] == [
      'gdp_placement has nothing to do: this program has one device, CPU:0'
  ]
