"""Calls of several steps, and threads, each without and with placement."""

import gc
import threading

import common
import numpy as np
import relocated
import tensorflow as tf

keras, layers = relocated.keras, relocated.layers
X, Y = relocated.X, relocated.Y
_LEGACY = keras.__version__.startswith('2.')
# In Keras 2 this layer draws numbers from a stream.
_DROPOUT = 0. if _LEGACY else .1


def uneven():
  """Runs calls of three steps, of two at an epoch's end, and of one by hand."""
  model = relocated.compiled(steps_per_execution=3, dropout=_DROPOUT)
  calls = []
  told = keras.callbacks.LambdaCallback(
      on_train_batch_end=lambda batch, logs: calls.append(
          (batch, float(logs['loss']))))
  results = [
      relocated.fit(model, 7, callbacks=[told], validation_data=(X, Y)), calls,
      model.evaluate(X, Y, verbose=0),
      relocated.total(model)
  ]
  if not _LEGACY:  # Keras 2 needs a known number of steps of more than one.
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    unknown = data.filter(lambda x, y: True)
    results.append(model.fit(unknown, epochs=2, verbose=0).history['loss'])
    results.append(float(model.train_on_batch(X, Y)))
  assert model.steps_per_execution == 3
  return results, relocated.weights(model)


def switched():
  """Switches the option on after a function was made and used."""
  option = tf.config.optimizer.get_experimental_options().get('gdp_placement')
  model = relocated.compiled(steps_per_execution=2, dropout=_DROPOUT)
  common.set_option(False)
  results = [relocated.fit(model)]
  for value in (option, False, option):
    common.set_option(value)
    results.append(relocated.fit(model))
  model.make_train_function(force=True)
  return results + [relocated.fit(model)], relocated.weights(model)


def of_two_shapes():
  """Fits batches of one size, then batches whose size Keras does not know."""
  keras.utils.set_random_seed(0)
  inputs = layers.Input((8,))
  hidden = layers.Dense(16, 'relu')(inputs)
  model = keras.Model(
      inputs, {name: layers.Dense(1, name=name)(hidden) for name in 'ab'})
  model.compile('sgd', {'a': 'mse', 'b': 'mae'}, steps_per_execution=3)
  data = tf.data.Dataset.from_tensor_slices((X, {'a': Y, 'b': -Y}))
  # Keras weights the losses of outputs by the size, if it knows the size.
  results = [
      model.fit(each, verbose=0).history
      for each in (data.batch(16, drop_remainder=True), data.batch(16))
  ]
  relocated.note(model)
  return results, relocated.weights(model)


def by_chance():
  """Runs steps that draw numbers from a stream, which stay in the loop."""

  class Noisy(layers.Layer):

    def call(self, x):
      return x + tf.random.normal(tf.shape(x), stddev=.1)

  keras.utils.set_random_seed(0)
  model = keras.Sequential(
      [layers.Input((8,)),
       Noisy(),
       layers.Dense(8, 'relu'),
       layers.Dense(3)])
  model.compile('sgd', 'mse', steps_per_execution=2)
  history = model.fit(X, X[:, :3], epochs=2, batch_size=16, verbose=0,
                      shuffle=False)
  return history.history['loss']


def threads():
  """Runs a call in another thread, which goes on after a step is cancelled."""
  tracing, running, fitted = (threading.Event() for _ in range(3))

  def wait():
    running.set()
    fitted.wait(60)
    return np.float32(1.)

  @tf.function(autograph=False)
  def other(x):
    value = tf.py_function(wait, [], tf.float32)
    with tf.control_dependencies([value]):
      for _ in range(20):
        x = tf.matmul(x, x)
    return tf.reduce_sum(x) * value

  def call():
    tracing.wait(60)
    results.append(float(other(tf.eye(4))))

  class Traced(layers.Layer):
    """A layer whose model is traced during a call of another thread."""

    def call(self, x, training=False):
      if training:
        tracing.set()
        running.wait(60)
      return x

  results = []
  model = relocated.compiled()
  traced = keras.Sequential([layers.Input((8,)), Traced(), model])
  traced.compile('sgd', model.loss)
  thread = threading.Thread(target=call)
  thread.start()
  losses = relocated.fit(traced)
  fitted.set()
  thread.join()
  return losses, results


def main():
  results = {}
  # In Keras 2 the steps stay in a loop, which the guard does not time. Threads
  # do not depend on Keras.
  guarded, alone = ((), ()) if _LEGACY else ((uneven,), (of_two_shapes,
                                                         threads))
  for guard in (False, True):
    option = {**common.RANDOM, 'guard': guard}
    for program in guarded if guard else (uneven, switched, by_chance, *alone):
      name = program.__name__ + ('_guarded' if guard else '')
      results[name] = relocated.both_ways(program, option)
      gc.collect()
  common.finish(keras=keras.__version__, **results)


if __name__ == '__main__':
  main()
