import pathlib

import tensorflow as tf
from tensorflow.python.util import tf_stack

from gdp_grappler import stack_room
from gdp_grappler.plugin import op_traces


def _made():
  """Files of the frames of an op that is made by way of the package."""
  with tf.Graph().as_default():
    return {
        frame.filename
        for frame in stack_room.call(tf.constant, 1.).op.traceback
    }


def _are_in_scope(*files):
  with op_traces.WithoutPackage():
    found = _made()
  return [file in found for file in files]


def test_ops_do_not_record_frames_of_the_package():
  """Errors of ops showed frames of wrapped methods between the user's."""
  assert {stack_room.__file__, __file__} <= _made()
  assert _are_in_scope(stack_room.__file__, __file__) == [False, True]
  assert stack_room.__file__ in _made()  # Nothing remains of the scope.


def test_files_of_the_scopes_around_stay_hidden():
  with tf_stack.CurrentModuleFilter():
    assert _are_in_scope(stack_room.__file__, __file__) == [False, False]
    with op_traces.WithoutPackage():
      assert _are_in_scope(stack_room.__file__, __file__) == [False, False]


def test_scopes_share_their_files():
  """A step of Keras enters one, so it must cost next to nothing."""
  scopes = [op_traces.WithoutPackage() for _ in range(2)]
  for scope in scopes:
    with scope:
      pass
  assert scopes[0].internal_set is scopes[1].internal_set


def test_scopes_do_not_change_each_other():
  with tf_stack.CurrentModuleFilter(), op_traces.WithoutPackage():
    pass
  assert _are_in_scope(__file__) == [True]


def test_few_files_are_copied_for_each_call_that_autograph_converts():
  """All files of the package once made tracing twice as slow."""
  package = pathlib.Path(stack_room.__file__).parent
  files = {str(file): file.read_text('utf-8') for file in package.rglob('*.py')}
  with op_traces.WithoutPackage() as scope:
    hidden = scope.get_filtered_filenames()
  assert hidden <= files.keys()
  assert len(hidden) < len(files) / 4
  wrapping = {name for name, text in files.items() if '_wrapping.wrap(' in text}
  assert len(wrapping) > 10 and wrapping <= hidden
