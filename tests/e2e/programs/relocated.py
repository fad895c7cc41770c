"""Programs whose variables move. Each runs without and with placement.

They are users' programs, so they only import the public names of this package.
"""

import contextlib
import functools
import gc
import io
import os
import sys
import tempfile
import unittest

import common
import moved_memory
import numpy as np
import shifted_sums
import tensorflow as tf

common.make_devices()
if os.environ.get('TF_USE_LEGACY_KERAS'):
  import tf_keras as keras
else:
  import keras

layers = keras.layers
_LEGACY = keras.__version__.startswith('2.')
# In Keras 2 its stream begins anew when a function is instantiated again, as
# it is when variables move or the option is switched in the middle.
_DROPOUT = 0. if _LEGACY else .1
_RANDOM = np.random.RandomState(0)
X = _RANDOM.randn(70, 8).astype(np.float32)
Y = _RANDOM.randint(0, 3, 70)
moved = set()
where = {}


def network(width=16, dropout=.1):
  inputs = layers.Input((8,))
  hidden = layers.Dense(width, 'relu')(layers.BatchNormalization()(inputs))
  return keras.Model(inputs, layers.Dense(3)(layers.Dropout(dropout)(hidden)))


def compiled(**kwargs):
  keras.utils.set_random_seed(0)
  model = network(dropout=kwargs.pop('dropout', .1))
  # Keras takes half as long again to trace a step with Adam.
  optimizer = (keras.optimizers.Adam(.01) if kwargs.pop('adam', False) else
               keras.optimizers.SGD(.01, .9, **kwargs.pop('optimizer', {})))
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile(optimizer, loss, **kwargs)
  return model


def fit(model, epochs=2, **kwargs):
  history = model.fit(X, Y, epochs=epochs, batch_size=16, verbose=0,
                      shuffle=False, **kwargs)
  note(model)
  return history.history['loss']


def note(model):
  """Records the devices that have variables of a model."""
  moved.update(v.device.rsplit(':', 1)[-1] for v in variables(model))


def variables(model):
  slots = model.optimizer.variables
  return model_variables(model) + plain(slots() if callable(slots) else slots)


def model_variables(model):
  return plain(model.variables)


def plain(every):
  return [v if isinstance(v, tf.Variable) else v.value for v in every]


def weights(model):
  return [float(np.sum(w, dtype=np.float64)) for w in model.get_weights()]


def fit_evaluate_predict():
  model = compiled(adam=True, metrics=['accuracy'])
  before = [model.evaluate(X, Y, verbose=0), total(model)]
  losses = fit(model, validation_data=(X, Y))
  return [
      before, losses,
      model.evaluate(X, Y, verbose=0),
      total(model),
      fit(model)
  ]


def fit_alone():
  """Returns losses, and the devices of the weights by kind of layer."""
  model = compiled()
  losses = [fit(model), fit(model)]
  for layer in model.layers:
    for v in layer.weights:
      v = v if isinstance(v, tf.Variable) else v.value
      where.setdefault(type(layer).__name__, set()).add(v.device[-5:])
  return losses


def total(model):
  return float(np.sum(model.predict(X, verbose=0), dtype=np.float64))


def traced_before():
  """Runs functions and datasets that captured handles before the move."""
  model = compiled()
  call = tf.function(lambda x: model(x, training=False))
  first = model.trainable_variables[0]
  data = tf.data.Dataset.from_tensors(
      X[:1]).map(lambda x: tf.reduce_sum(x) * tf.reduce_sum(first))
  results = [float(tf.reduce_sum(call(X)))]
  results.append(fit(model))
  results.append(float(tf.reduce_sum(call(X))))
  results += [float(x) for x in data]
  if not _LEGACY:
    # The functions use the moved variables without a new trace.
    assert call.experimental_get_tracing_count() == 1
  return results


def shared_layers():
  """Trains two models that share layers, as in a GAN, batch by batch."""
  keras.utils.set_random_seed(0)
  body = network()
  inputs = layers.Input((8,))
  both = keras.Model(inputs, layers.Dense(3)(body(layers.Dense(8)(inputs))))
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  body.compile(keras.optimizers.Adam(.01), loss)
  both.compile(keras.optimizers.SGD(.01), loss)
  results = []
  for _ in range(4):
    results.append(float(body.train_on_batch(X, Y)))
    results.append(float(both.train_on_batch(X, Y)))
    note(body)
    note(both)
  return results, weights(both), float(body.test_on_batch(X, Y))


def nested_fit():
  """Runs a fit whose callback trains another model and the same model."""
  inner, outer = compiled(), compiled()
  losses = []

  class Nested(keras.callbacks.Callback):

    def on_epoch_end(self, epoch, logs=None):
      losses.append(fit(inner, 1))
      losses.append(float(outer.train_on_batch(X, Y)))

  return fit(outer, callbacks=[Nested()]), losses, weights(outer)


def files():
  """Writes and reads checkpoints, weights, whole models and exports."""
  model = compiled()
  fit(model)
  with tempfile.TemporaryDirectory() as folder:
    model.save_weights(f'{folder}/w.weights.h5')
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    path = checkpoint.save(f'{folder}/checkpoint')
    model.save(f'{folder}/model.keras')
    with contextlib.redirect_stdout(io.StringIO()):
      model.export(f'{folder}/exported')
    kept = weights(model)
    fit(model)
    model.load_weights(f'{folder}/w.weights.h5')
    assert weights(model) == kept
    fit(model)
    checkpoint.restore(path)
    assert weights(model) == kept
    again = keras.models.load_model(f'{folder}/model.keras')
    served = tf.saved_model.load(f'{folder}/exported')
    output = served.serve(X)
  return fit(model), fit(again), float(tf.reduce_sum(output))


def averages():
  """Trains with averaged weights, which a callback, if any, swaps in."""
  model = compiled(optimizer={
      'use_ema': True, 'ema_momentum': .9, 'ema_overwrite_frequency': 3
  })
  results = [fit(model)]
  if not _LEGACY:
    model = compiled(optimizer={'use_ema': True})
    swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
    results.append(fit(model, validation_data=(X, Y), callbacks=[swap]))
  return results, weights(model)


def accumulation():
  return fit(compiled(optimizer={'gradient_accumulation_steps': 2}))


def eagerly():
  return fit(compiled(run_eagerly=True), 1)


def from_dataset():
  data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
  model = compiled()
  losses = model.fit(data, epochs=2, verbose=0).history['loss']
  note(model)
  return losses


def error_in_the_middle():
  model = compiled()

  class Stop(keras.callbacks.Callback):

    def on_train_batch_end(self, batch, logs=None):
      if batch == 2:
        raise RuntimeError('stop')

  with unittest.TestCase().assertRaisesRegex(RuntimeError, '^stop$'):
    fit(model, callbacks=[Stop()])
  return weights(model), fit(model)


def own_loop():
  """Runs a user's own loop; a public call moves its variables."""
  keras.utils.set_random_seed(0)
  model = network(dropout=_DROPOUT)
  optimizer = keras.optimizers.SGD(.01, momentum=.9)
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

  @tf.function
  def step(x, y):
    with tf.GradientTape() as tape:
      value = loss(y, model(x, training=True))
    grads = tape.gradient(value, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return value

  results = [float(step(X, Y))]
  if is_on():
    import gdp_grappler
    name = model.trainable_variables[0].name
    gdp_grappler.relocate(model.trainable_variables[1:], 'CPU:2')
    gdp_grappler.relocate(
        model.trainable_variables,
        {getattr(model.trainable_variables[0], 'path', name): 'CPU:1'})
    moved.update(
        (v if isinstance(v, tf.Variable) else v.value).device.rsplit(':')[-1]
        for v in model.trainable_variables)
  return results + [float(step(X, Y)) for _ in range(3)]


def made_again():
  """Runs functions that are made again, which continue with the same plan.

  The step of a new optimizer, as in fine-tuning, plans all weights anew. The
  weights begin on their first devices, so that the unplaced step can be timed.
  In an earlier version they belonged to the previous step, which still exists,
  and stayed on the devices of that step.
  """
  model = compiled(dropout=_DROPOUT)
  results = [fit(model)]
  where_planned = [v.device for v in variables(model)]
  model.make_train_function(force=True)
  results.append(fit(model))
  assert [v.device for v in variables(model)] == where_planned
  before = model.train_function
  model.layers[2].trainable = False
  model.compile(keras.optimizers.SGD(.01), model.loss)
  model.make_train_function()
  assert {v.device.rsplit(':', 1)[-1] for v in variables(model)} == {'0'}
  results.append(fit(model))
  assert len({v.device for v in model_variables(model)}) > 1 or not is_on()
  assert before is not model.train_function
  return results


def compiled_by_xla():
  """Compiles for one device by XLA; this once failed after variables moved."""
  model, other = compiled(jit_compile=False), compiled(jit_compile=False)
  calls = [
      tf.function(functools.partial(each, training=False), jit_compile=True)
      for each in (model, other)
  ]
  results = [float(tf.reduce_sum(calls[1](X)))]  # Traced before the move.
  for each, call in zip((model, other), calls):
    results += [fit(each), float(tf.reduce_sum(call(X))), fit(each, 1)]
    assert {v.device.rsplit(':', 1)[-1] for v in model_variables(each)} == {'0'}
  model.compile(keras.optimizers.SGD(.01), model.loss, jit_compile=True)
  return results, fit(model), weights(model), weights(other)


def compiled_again():
  """Compiles a model again, whose variables then go back."""
  results = fit(model := compiled())
  model.compile(keras.optimizers.SGD(.01), model.loss, run_eagerly=True)
  results += fit(model, 1)
  assert {v.device.rsplit(':', 1)[-1] for v in variables(model)} == {'0'}
  return results


def is_on():
  options = tf.config.optimizer.get_experimental_options()
  return bool(options.get('gdp_placement'))


def switched():
  """Switches the option off and on: the weights move back, and then again.

  The same holds after a change of another option, because TensorFlow shows a
  graph to the pass once for each set of options.
  """
  option = tf.config.optimizer.get_experimental_options().get('gdp_placement')
  model = compiled(dropout=_DROPOUT)
  results = [fit(model)]
  common.set_option(False)
  assert {v.device.rsplit(':', 1)[-1] for v in variables(model)} == {'0'}
  results += [fit(model), total(model)]
  for value in (option, option and {**option, 'seed': 9}, option):
    common.set_option(value)
    results.append(fit(model))
    places = {v.device.rsplit(':', 1)[-1] for v in variables(model)}
    assert len(places) > 1 or not option
  return results


def shifted():
  model = shifted_sums.model(keras)
  return fit(model, 4), weights(model)


def read_by_a_dataset():
  """Runs a dataset, made after weights moved, which reads the moved weights.

  In an earlier version the weights moved back while the dataset was in use, and
  the dataset continued with old values.
  """
  option = tf.config.optimizer.get_experimental_options().get('gdp_placement')
  model = compiled(dropout=_DROPOUT)
  results = [fit(model)]
  every = model.trainable_variables
  data = tf.data.Dataset.from_tensors(0).map(
      lambda unused: tf.add_n([tf.reduce_sum(v) for v in every]))
  results += [float(x) for x in data]
  common.set_option(False)
  results.append(fit(model))
  results += [float(x) for x in data]
  common.set_option(option)
  results.append(fit(model))
  return results + [float(x) for x in data]


# Programs that differ between Keras 2 and Keras 3.
PROGRAMS = (fit_evaluate_predict, traced_before, shared_layers, files, averages,
            own_loop, made_again, switched, read_by_a_dataset, shifted)
if not _LEGACY:
  PROGRAMS += (nested_fit, accumulation, eagerly, from_dataset,
               error_in_the_middle, compiled_by_xla, compiled_again)


@functools.cache
def stock(program):
  """Returns the results of a program without placement."""
  common.set_option(False)
  return repr(program())


def both_ways(program, option):
  """Returns results without and with placement, and devices of variables."""
  expected = stock(program)
  moved.clear()
  where.clear()
  common.set_option(option)
  print(f'PROGRAM {program.__name__}', file=sys.stderr)
  placed = program()
  return {'equal': expected == repr(placed), 'devices': sorted(moved)}


def main():
  results = {}
  for program in PROGRAMS:
    results[program.__name__] = both_ways(program,
                                          {**common.RANDOM, 'guard': False})
    gc.collect()
  results['guarded'] = both_ways(fit_alone, {**common.RANDOM, 'guard': True})
  plan = {'dense*': 'CPU:1', 'batch_normalization*': 'CPU:2'}
  results['planned'] = both_ways(fit_alone, {'plan': plan})
  results['planned']['where'] = {k: sorted(d) for k, d in where.items()}
  if not _LEGACY:  # Keras has no part in freeing memory, so one is enough.
    results['memory'] = moved_memory.memory()
  common.finish(keras=keras.__version__, **results)


if __name__ == '__main__':
  main()
