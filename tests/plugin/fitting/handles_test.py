import pytest
import tensorflow as tf

from gdp_grappler.plugin.fitting import handles


def test_holders_of_a_handle_mean_the_other_variable():
  one, other = tf.Variable([1., 2.]), tf.Variable([3., 4.])
  held, identity = one.handle, one.handle._id
  read = tf.function(lambda: one.read_value())
  assert read().numpy().tolist() == [1., 2.]
  handles.exchange(one.handle, other.handle)
  assert one.handle is held and one.handle._id == identity
  assert read().numpy().tolist() == one.numpy().tolist() == [3., 4.]
  assert other.numpy().tolist() == [1., 2.]
  assert read.experimental_get_tracing_count() == 1


def test_writes_after_the_exchange_go_to_the_new_memory():
  one, other = tf.Variable(1.), tf.Variable(2.)
  handles.exchange(one.handle, other.handle)
  one.assign(5.)
  assert (one.numpy(), other.numpy()) == (5., 1.)


@pytest.mark.parametrize('tensor', [1., None, 'text'])
def test_other_objects_are_refused(tensor):
  assert not handles.can_exchange(tensor)
  with pytest.raises(ValueError, match='no eager tensor'):
    handles.exchange(tf.Variable(1.).handle, tensor)


def test_tensors_of_graphs_are_refused():
  with tf.Graph().as_default():
    assert not handles.can_exchange(tf.constant(1.))


def test_nothing_is_touched_where_tensorflow_has_no_such_function(monkeypatch):
  monkeypatch.setattr(handles, '_content_function', lambda: None)
  one, other = tf.Variable(1.), tf.Variable(2.)
  assert not handles.can_exchange(one.handle)
  with pytest.raises(ValueError):
    handles.exchange(one.handle, other.handle)
  assert one.numpy() == 1.
