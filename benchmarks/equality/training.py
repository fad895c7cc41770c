"""Ways to train with Keras other than a plain `fit`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from benchmarks.equality import base

keras, layers = base.keras, base.layers


def _model(units: int = 16) -> Any:
  return keras.Sequential([
      layers.Input((8,)),
      layers.Dense(units, 'relu'),
      layers.BatchNormalization(),
      layers.Dense(3)
  ])


@base.program()
def averaged() -> base.Numbers:
  """Weight decay, and averages of weights that serve for validation."""
  model = base.compiled(
      _model(),
      keras.optimizers.AdamW(.01, weight_decay=.02, use_ema=True,
                             ema_momentum=.8))
  swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
  x, y = base.data(40, 8)
  return base.fit(model, x, y, validation_data=(x, y), callbacks=[swap])


@base.program()
def accumulated() -> base.Numbers:
  """Accumulated gradients, and averages that overwrite weights."""
  optimizer = keras.optimizers.Adam(.01, gradient_accumulation_steps=3,
                                    use_ema=True, ema_overwrite_frequency=2)
  return base.fit(base.compiled(_model(), optimizer), *base.data(70, 8))


@base.program(legacy=True)
def clipped() -> base.Numbers:
  """Clipped gradients, and a decaying learning rate."""
  rate = keras.optimizers.schedules.CosineDecay(.05, 12)
  optimizer = keras.optimizers.Adam(rate, global_clipnorm=.5, amsgrad=True)
  return base.fit(base.compiled(_model(), optimizer), *base.data(70, 8))


@base.program(legacy=True)
def optimizers() -> base.Numbers:
  """One model after the other, each with another optimizer."""
  numbers: list[Any] = []
  variables: list[Any] = []
  for name in ('Adadelta', 'Adamax', 'Ftrl', 'Lion', 'RMSprop'):
    optimizer = getattr(keras.optimizers, name)(.01)
    found, own = base.fit(base.compiled(_model(), optimizer), *base.data(40, 8))
    numbers.append(found)
    variables += own
  return numbers, variables


@base.program(legacy=True)
def several_steps() -> base.Numbers:
  """Three steps per call, and one step in the last call."""
  model = base.compiled(_model(), steps_per_execution=3, metrics=['accuracy'])
  return base.fit(model, *base.data(110, 8), validation_split=.2)


@base.program(legacy=True)
def own_step() -> base.Numbers:
  """A `train_step` with a tape, a gradient of a gradient and a metric."""

  class Penalized(base.Model):

    def __init__(self) -> None:
      super().__init__()
      self.begin, self.end = layers.Dense(12, 'tanh'), layers.Dense(1)
      self.seen = keras.metrics.Mean(name='seen')

    def call(self, x: Any) -> Any:
      return self.end(self.begin(x))

    def train_step(self, batch: Any) -> Any:
      x, y = batch
      with tf.GradientTape() as tape:
        with tf.GradientTape() as inner:
          inner.watch(x)
          output = self(x, training=True)
        slope = inner.gradient(output, x)
        loss = tf.reduce_mean((output[:, 0] - tf.cast(y, tf.float32))**2)
        loss += .1 * tf.reduce_mean((tf.norm(slope, axis=1) - 1.)**2)
      weights = self.trainable_variables
      self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
      self.seen.update_state(loss)
      return {'seen': self.seen.result()}

  model = Penalized()
  model.compile('adam', 'mse')
  x, y = base.data(40, 8)
  history = model.fit(x, y, batch_size=16, epochs=3, verbose=0, shuffle=False)
  return history.history, base.variables(model)


@base.program(legacy=True)
def by_batches() -> base.Numbers:
  """`train_on_batch` and similar methods of two models that share layers."""
  body = _model()
  inputs = layers.Input((8,))
  both = keras.Model(inputs, layers.Dense(3)(body(layers.Dense(8)(inputs))))
  base.compiled(body)
  base.compiled(both, 'sgd')
  numbers = []
  for seed in range(4):
    x, y = base.data(16 + seed, 8, seed=seed)
    numbers += [
        body.train_on_batch(x, y),
        both.train_on_batch(x, y),
        both.test_on_batch(x, y),
        both.predict_on_batch(x)
    ]
  return numbers, base.variables(body, both)


@base.program(legacy=True)
def callbacks() -> base.Numbers:
  """Callbacks that change the learning rate and weights, and stop training."""
  model = base.compiled(_model(), 'sgd')
  x, y = base.data(40, 8)

  def shrink(epoch: int, logs: Any) -> None:
    del epoch, logs
    model.layers[0].set_weights(
        [.9 * weight for weight in model.layers[0].get_weights()])

  return base.fit(
      model, x, y, epochs=6, validation_data=(x, y), callbacks=[
          keras.callbacks.ReduceLROnPlateau(patience=1, monitor='loss'),
          keras.callbacks.LearningRateScheduler(lambda e, rate: rate * .9),
          keras.callbacks.EarlyStopping(monitor='loss', patience=2,
                                        restore_best_weights=True),
          keras.callbacks.LambdaCallback(on_epoch_end=shrink)
      ])


@base.program(legacy=True)
def fine_tuned() -> base.Numbers:
  """A new head on layers that are frozen, then trained."""
  body = _model()
  first, _ = base.fit(base.compiled(body), *base.data(40, 8))
  body.trainable = False
  model = keras.Sequential([layers.Input((8,)), body, layers.Dense(3)])
  second, _ = base.fit(base.compiled(model), *base.data(40, 8, seed=1))
  body.trainable = True
  third, _ = base.fit(base.compiled(model, keras.optimizers.Adam(1e-3)),
                      *base.data(40, 8, seed=1))
  return [first, second, third], base.variables(body, model)


@base.program(legacy=True)
def distilled() -> base.Numbers:
  """A small model that learns from a large one, within one step."""

  class Distiller(base.Model):

    def __init__(self) -> None:
      super().__init__()
      self.teacher, self.student = _model(64), _model(8)

    def call(self, x: Any, training: bool = False) -> Any:
      return self.student(x, training=training)

    def train_step(self, batch: Any) -> Any:
      x, _ = batch
      wanted = tf.nn.softmax(self.teacher(x, training=False) / 2.)
      with tf.GradientTape() as tape:
        found = tf.nn.log_softmax(self.student(x, training=True) / 2.)
        loss = -tf.reduce_mean(tf.reduce_sum(wanted * found, axis=1))
      weights = self.student.trainable_variables
      self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
      return {'loss': loss}

  model = Distiller()
  model.compile('adam')
  x, y = base.data(40, 8)
  history = model.fit(x, y, batch_size=16, epochs=3, verbose=0, shuffle=False)
  return history.history, base.variables(model)


@base.program()
def variational() -> base.Numbers:
  """A variational autoencoder, and a loss that a layer adds."""

  class Draw(base.Layer):

    def __init__(self) -> None:
      super().__init__()
      self.seeds = keras.random.SeedGenerator(3)

    def call(self, parts: Any) -> Any:
      mean, log_var = parts
      self.add_loss(
          -.5 * keras.ops.mean(1. + log_var - mean**2 - keras.ops.exp(log_var)))
      noise = keras.random.normal(keras.ops.shape(mean), seed=self.seeds)
      return mean + keras.ops.exp(log_var / 2.) * noise

  inputs = layers.Input((8,))
  hidden = layers.Dense(16, 'relu')(inputs)
  code = Draw()([layers.Dense(2)(hidden), layers.Dense(2)(hidden)])
  model = keras.Model(inputs, layers.Dense(8)(layers.Dense(16, 'relu')(code)))
  model.compile('adam', 'mse')
  x, _ = base.data(40, 8)
  return base.fit(model, x, x)


@base.program()
def swapped_in_the_middle() -> base.Numbers:
  """The option is switched off and on during training."""
  model = base.compiled(_model())
  option = tf.config.optimizer.get_experimental_options().get('gdp_placement')
  numbers = []
  for value in (option, False, option):
    tf.config.optimizer.set_experimental_options({'gdp_placement': value})
    numbers.append(base.fit(model, *base.data(40, 8))[0])
  return numbers, base.variables(model)


@base.program(stays=True)
def compiled() -> base.Numbers:
  """XLA by the user's `jit_compile`."""
  return base.fit(base.compiled(_model(), jit_compile=True), *base.data(48, 8))


@base.program(stays=True)
def eager() -> base.Numbers:
  """Eager execution."""
  x, y = base.data(40, 8)
  model = base.compiled(_model(), run_eagerly=True)
  history = model.fit(x, y, batch_size=16, verbose=0, shuffle=False)
  return history.history, base.variables(model)


@base.program(legacy=True)
def weights_in_steps() -> base.Numbers:
  """A step that updates a counter, an average and a queue of the model."""

  class Counting(base.Layer):

    def __init__(self) -> None:
      super().__init__()
      self.count = tf.Variable(0, trainable=False)
      self.mean = tf.Variable(tf.zeros(16), trainable=False)
      self.last = tf.Variable(tf.zeros((4, 16)), trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
      if training:
        self.count.assign_add(1)
        self.mean.assign(.9 * self.mean + .1 * tf.reduce_mean(x, axis=0))
        self.last.scatter_nd_update([[self.count % 4]], [self.mean])
      return x - tf.reduce_mean(self.last, axis=0)

  counting = Counting()
  model = keras.Sequential(
      [layers.Input((8,)),
       layers.Dense(16, 'relu'), counting,
       layers.Dense(3)])
  numbers, found = base.fit(base.compiled(model), *base.data(40, 8))
  return numbers, [*found, counting.count, counting.mean, counting.last]
