"""Errors about steps that fit no memory give advice."""

import keras
import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler import spelling

_TOO_SMALL = {'GPU': '150kB', 'CPU': '1MB'}


def _make():
  model = keras.Sequential([
      keras.Input((4,), dtype='int32'),
      keras.layers.Embedding(5000, 8, name='words'),
      keras.layers.Flatten(),
      keras.layers.Dense(3)
  ], name='model')
  model.compile('adam', 'mse')
  return model


def _error(graph, max_memory, **arguments):
  with pytest.raises(errors.InfeasiblePlacementError) as error:
    gdp_grappler.place(graph, '2xP100', max_memory=max_memory, time_budget_s=1.,
                       verbose=False, **arguments)
  return str(error.value)


@pytest.mark.parametrize('chosen, advice', [
    ('off', "split_tables='auto' cuts \"model/words/embeddings\" into "),
    ({'words': 2
     }, "split_tables='auto' cuts \"model/words/embeddings\" into more "
     'parts.'),
])
def test_who_forbids_parts_that_would_fit_is_told_so(chosen, advice):
  assert advice in _error(_make, _TOO_SMALL, split_tables=chosen)


def test_who_gives_a_model_that_is_made_is_told_to_give_a_function():
  said = _error(_make(), _TOO_SMALL)
  assert 'Give a function that makes the model, which cuts "model/wo' in said


def test_the_advice_is_spelled_as_a_flag_for_commands():
  with spelling.as_flags():
    said = _error(_make, _TOO_SMALL, split_tables='off')
  assert '--split_tables=auto cuts "model/words/embeddings"' in said


def test_only_a_command_says_that_nothing_was_written():
  """Callers in Python do not ask for a file."""
  assert 'Nothing was written' not in _error(_make, _TOO_SMALL)
  with spelling.as_flags():
    assert _error(_make, _TOO_SMALL).endswith(' Nothing was written.')


def test_a_table_that_parts_do_not_save_is_not_cut():
  said = _error(_make, {'GPU': '100B', 'CPU': '100B'})
  assert '_part_' not in said and 'in parts' not in said
  assert 'cuts' not in said and 'What would help' in said


def test_temporary_memory_of_a_convolution_is_named():

  def make():
    return keras.Sequential([
        keras.Input((64, 64, 8)),
        keras.layers.Conv2D(8, 3, padding='same', name='wide')
    ])

  said = _error(make, {'GPU': '10MB'})
  assert 'wide' in said and 'of temporary memory while it runs' in said
  assert 'slots' not in said
