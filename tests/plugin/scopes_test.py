import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler.plugin import scopes


def _attributes(op):
  result = []
  for name in ('_gdp_pin', '_gdp_leave_alone'):
    try:
      result.append(op.get_attr(name))
    except ValueError:
      result.append(None)
  return result


def test_ops_inside_carry_the_device():
  with tf.Graph().as_default():
    before = tf.constant(1.)
    with gdp_grappler.pin('gpu:1'):
      inside = tf.constant(1.)
    after = tf.constant(1.)
  assert _attributes(inside.op) == [b'/device:GPU:1', None]
  assert _attributes(before.op) == _attributes(after.op) == [None, None]


@pytest.mark.parametrize('scope, inside', [
    (lambda: gdp_grappler.pin('CPU:1'), [b'/device:CPU:1', None]),
    (gdp_grappler.leave_alone, [None, True]),
])
def test_inner_scope_wins_and_outer_comes_back(scope, inside):
  """Once a scope `leave_alone` had no effect inside `pin`."""
  function = tf.function(lambda: tf.constant(1.))
  with tf.Graph().as_default():
    for outer, outside in ((gdp_grappler.pin('CPU:0'), [b'/device:CPU:0',
                                                        None]),
                           (gdp_grappler.leave_alone(), [None, True])):
      with outer:
        with scope():
          inner = tf.constant(1.)
          traced, = function.get_concrete_function().graph.get_operations()[:1]
        after = tf.constant(1.)
      assert _attributes(inner.op) == _attributes(traced) == inside
      assert _attributes(after.op) == outside
      function = tf.function(lambda: tf.constant(1.))


def test_scope_ends_with_an_exception():
  with tf.Graph().as_default():
    with pytest.raises(KeyError), gdp_grappler.pin('CPU:1'):
      raise KeyError
    op = tf.constant(1.).op
  assert _attributes(op) == [None, None]


def test_one_scope_can_be_entered_again():
  scope = gdp_grappler.pin('CPU:1')
  with tf.Graph().as_default():
    with scope, scope:
      inner = tf.constant(1.).op
    outer = tf.constant(1.).op
  assert _attributes(inner)[0] == b'/device:CPU:1'
  assert _attributes(outer)[0] is None


def test_new_function_graphs_inherit_and_later_ones_do_not():
  function = tf.function(lambda x: tf.sin(x))
  other = tf.function(lambda x: tf.sin(x))
  with gdp_grappler.leave_alone():
    inside = function.get_concrete_function(tf.constant(1.))
  outside = other.get_concrete_function(tf.constant(1.))
  sines = [
      next(op for op in f.graph.get_operations() if op.type == 'Sin')
      for f in (inside, outside)
  ]
  assert [_attributes(op)[1] for op in sines] == [True, None]


def test_no_effect_on_eager_values():
  with gdp_grappler.pin('CPU:0'):
    assert float(tf.constant(2.) * 3.) == 6.


@pytest.mark.parametrize('device', ['', 'GPU', '/job:x', 'somewhere', 3, None])
def test_bad_device_is_refused_at_once(device):
  with pytest.raises(ValueError, match='gdp_grappler.pin'):
    gdp_grappler.pin(device)


def test_use_is_noticed():
  with gdp_grappler.pin('CPU:0'):
    assert scopes.were_used()
