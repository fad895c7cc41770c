"""If Keras chooses XLA, `fit` compares placed steps with steps by XLA."""

import pytest

from helpers import programs

pytestmark = pytest.mark.e2e
_CLUSTERS = 'placed, with XLA inside each device'
_WAYS = ('with XLA', 'placed', _CLUSTERS)

# On CPUs with AVX-512 oneDNN rewrites ops, and XLA does not cluster these ops.
results = programs.results('compared.py', TF_ENABLE_ONEDNN_OPTS='0')


@pytest.mark.parametrize('way', _WAYS)
def test_the_fastest_way_stays(results, way):
  found = results['ends'][way]
  assert found['way'] == way
  is_placed = way != 'with XLA'
  assert (len(found['variables']) > 1) == is_placed
  assert found['losses'] == pytest.approx(results['stock'], rel=1e-4)
  planned, said = [l for l in found['lines'] if 'initialize' not in l]
  assert 'the first steps run with XLA, to compare' in planned
  assert ' with XLA, ' in said and 'XLA rounds differently' in said
  last = f'stays {way}{", as Keras chose" * (not is_placed)}'
  assert f': {last}. ' in said


def test_clusters_are_on_every_device_that_has_some(results):
  assert len(results['ends'][_CLUSTERS]['clustered']) > 1


@pytest.mark.parametrize('way', _WAYS)
def test_evaluate_follows_fit(results, way):
  lines = results['ends'][way]['evaluated']
  stays = any('XLA compiles it, as Keras chose' in line for line in lines)
  assert stays == (way == 'with XLA')


@pytest.mark.parametrize('way', _WAYS)
def test_switched_off_and_on_nothing_is_timed_again(results, way):
  again, lines = results['ends'][way]['again']
  assert again == way
  assert not any('medians of' in line for line in lines)


def test_steps_of_a_call_are_compared_as_well(results):
  found = results['several']
  assert found['way'] == 'placed' and len(found['variables']) > 1
  assert any('calls of 2 steps' in line for line in found['lines'])


def test_a_layer_that_another_model_moved_goes_back_for_xla(results):
  """XLA once failed in the first step of the second model."""
  found = results['shared']
  for losses, expected in zip(found['losses'], found['stock'], strict=True):
    assert losses == pytest.approx(expected, rel=1e-4)
  line, = [l for l in found['lines'] if 'go back' in l]
  assert 'XLA compiles it for one device (as Keras chose)' in line


def test_a_step_that_xla_compiled_before_the_option_was_on_is_placed(results):
  """The step once counted as a user's function, whose variables stay."""
  assert len(results['late']) > 1


def test_a_loaded_model_is_compared_as_well(results):
  """Keras stores "auto" as True, which once counted as the user's choice."""
  assert results['loaded'] == 'placed'


@pytest.mark.parametrize('case, said', [
    ('no_gain', 'gives no gain'),
    ('report', 'would be placed by random'),
    ('kept', "('xla': 'keep')"),
])
def test_without_a_comparison_xla_stays_to_the_last_bit(results, case, said):
  found = results[case]
  assert found['way'] == 'with XLA'
  assert found['losses'] == results['stock']
  line, = [l for l in found['lines'] if 'initialize' not in l]
  assert said in line and 'as Keras chose' in line


@pytest.mark.parametrize('mode', ['apply', 'report'])
def test_xla_off_gives_the_numbers_of_keras_without_xla(results, mode):
  found = results['without_xla']
  assert found[mode]['losses'] == found['stock'] != results['stock']
  said = {'apply': ' placed by random', 'report': 'would be placed by random'}
  assert any(said[mode] in line for line in found[mode]['lines'])


def test_with_one_gpu_a_program_runs_as_without_us(results):
  found = results['one_gpu']
  assert found['devices'] == 2
  assert found['on'] == found['off']
  assert found['on']['jit_compile'] and all(found['on']['compiled'])
  assert not found['on']['has_pass']
  assert found['lines'] == [
      'gdp_placement has nothing to do: this program has one GPU, GPU:0, and '
      'runs on it as without the option, XLA included'
  ]
