import types

import pytest

from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import outcome

_CALL = types.SimpleNamespace(what='fit of "model"', waiting_since=None)


@pytest.mark.parametrize('step', [
    'one_step_on_data', 'one_step_on_iterator', 'multi_step_on_iterator',
    'train_function', 'test_function', 'predict_function', 'run_step'
])
def test_steps_of_keras_are_named_by_what_the_user_called(step):
  assert current_call.named(f'{step}: 9 ops placed',
                            _CALL) == 'fit of "model": 9 ops placed'


def test_other_graphs_keep_their_names():
  assert current_call.named('my_step: 9 ops', _CALL) == 'my_step: 9 ops'
  assert current_call.named('train_function: 9 ops',
                            None) == 'train_function: 9 ops'
  assert current_call.named('', _CALL) == ''


@pytest.mark.parametrize('name, title', [
    ('__inference_one_step_on_data_873', 'fit of "model"'),
    ('one_step_on_iterator', 'fit of "model"'),
    ('__inference_my_step_12', 'my_step'),
    ('session', 'session'),
])
def test_no_decorated_name_is_a_title(name, title):
  assert current_call.title(name, _CALL) == title


@pytest.mark.parametrize('name, title', [
    ('__inference_one_step_on_data_8', 'step of a Keras model'),
    ('__inference_multi_step_on_iterator_3', 'step of a Keras model'),
    ('__inference_initialize_variables_4', 'initial values of variables'),
    ('__inference_tf_function_save_6', 'saving or loading of a model'),
    ('__inference_save_fn_6', 'saving or loading of a model'),
    ('__inference_restore_fn_6', 'saving or loading of a model'),
    ('__inference_signature_wrapper_9', 'signature of a SavedModel'),
    ('__inference_signature_wrapper___call___9', 'signature of a SavedModel'),
    ('__inference_signature_wrapper_serving_default_9',
     'signature of a SavedModel (serving_default)'),
    ('__inference_restored_function_body_5', 'call of a SavedModel'),
    ('__inference___call___7', 'call of a model'),
    ('__inference___backward_taped_78_220', 'gradients of taped'),
    ('__backward_one_step_on_data', 'gradients of step of a Keras model'),
    ('tf_graph', 'graph of a session'),
])
def test_a_function_that_no_user_wrote_has_a_name_that_users_know(name, title):
  """Once lines had names of functions that TensorFlow and Keras wrote."""
  assert current_call.title(name, None) == title


@pytest.mark.parametrize('name, plain', [
    ('__inference_block_1_37', 'block_1'),
    ('__forward_block_1_88', 'block_1'),
    ('__inference___backward_block_1_42_89', '__backward_block_1'),
    ('__inference___backward___backward_block_1_697_820_947',
     '__backward___backward_block_1'),
    ('block_1', 'block_1'),
])
def test_the_number_that_the_user_gave_a_function_stays(name, plain):
  """Once lines and files called both block_1 and block_2 "block"."""
  assert current_call.undecorated(name) == plain
  assert current_call.undecorated(plain) == plain


def test_a_call_does_not_name_what_is_no_step_of_it():
  assert current_call.title('__inference_initialize_variables_4',
                            _CALL) == 'initial values of variables'


def test_a_line_made_for_another_function_names_the_one_that_runs():
  line = 'one: left as it was: Graph "one" does not fit'
  assert current_call.named(
      line, None,
      '__inference_two_7') == ('two: left as it was: Graph "two" does not fit')
  assert current_call.named('g: 9 ops', None, 'tf_graph') == 'g: 9 ops'


@pytest.mark.parametrize('call, graph', [(_CALL, 'fit of "model"'),
                                         (None, '"step of a Keras model"')])
def test_errors_name_a_graph_as_lines_do(call, graph):
  assert current_call.explained('Plan p is not for "one_step_on_data": 3 ops',
                                '__inference_one_step_on_data_8',
                                call) == f'Plan p is not for {graph}: 3 ops'


def test_a_call_may_have_its_graphs_left_alone():
  task = current_call.LeftAlone('tracing').task(None)
  assert task is outcome.leave_alone


def test_a_call_may_give_its_name_alone():
  call = current_call.Named('fit of "model"')
  assert current_call.run(call, current_call.current) is call
  assert call.task(None) is None and not call.is_placed


def test_a_saved_model_of_tensorflow_1_is_not_called_pruned():
  assert current_call.named(
      'pruned: 10 ops placed by gdp',
      None) == 'function of a TensorFlow 1 graph: 10 ops placed by gdp'
  assert current_call.named('was pruned: 1 op', None) == 'was pruned: 1 op'


def test_a_user_waits_from_the_first_graph_on():
  assert current_call.since(5.) == 5.
  waiting = types.SimpleNamespace(what='', waiting_since=2.)
  assert current_call.run(waiting, current_call.since, 5.) == 2.
  assert current_call.run(_CALL, current_call.since, 5.) == 5.
