"""Custom training loops in TensorFlow 2."""

from __future__ import annotations

import tempfile
from typing import Any, Callable

import numpy as np
import tensorflow as tf

from benchmarks.equality import base

keras, layers = base.keras, base.layers
_STEPS = 5  # Steps of a program.


def _dense(*units: int, inputs: int = 8) -> Any:
  return keras.Sequential([
      layers.Input((inputs,)), *(layers.Dense(n, 'tanh') for n in units[:-1]),
      layers.Dense(units[-1])
  ])


def _repeated(step: Callable[..., Any], *arguments: Any) -> list[Any]:
  """Returns the results of the first steps."""
  return [
      tf.nest.map_structure(np.array, step(*arguments)) for _ in range(_STEPS)
  ]


@base.program(legacy=True)
def adversaries() -> base.Numbers:
  """Two adversarial models with an optimizer each."""
  maker, judge = _dense(16, 8, inputs=4), _dense(16, 1)
  optimizers = [keras.optimizers.Adam(.01) for _ in range(2)]
  random = tf.random.Generator.from_seed(1)
  real, _ = base.data(24, 8)

  @tf.function
  def step(real: Any) -> Any:
    noise = random.normal((24, 4))
    with tf.GradientTape(persistent=True) as tape:
      made = maker(noise, training=True)
      yes, no = judge(real, training=True), judge(made, training=True)
      judged = tf.reduce_mean(tf.nn.softplus(-yes) + tf.nn.softplus(no))
      fooled = tf.reduce_mean(tf.nn.softplus(-no))
    for optimizer, model, loss in zip(optimizers, (judge, maker),
                                      (judged, fooled)):
      weights = model.trainable_variables
      optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return judged, fooled

  return _repeated(step, real), [random.state, *base.variables(maker, judge)]


@base.program(legacy=True)
def penalty() -> base.Numbers:
  """A gradient through a gradient, and through a loop."""
  model, optimizer = _dense(12, 1), keras.optimizers.RMSprop(.01)
  x, _ = base.data(16, 8)

  @tf.function
  def step(x: Any) -> Any:
    with tf.GradientTape() as tape:
      z = x
      for _ in tf.range(3):
        with tf.GradientTape() as inner:
          inner.watch(z)
          energy = tf.reduce_sum(model(z))
        z -= .1 * inner.gradient(energy, z)
      loss = tf.reduce_mean(model(x)) - tf.reduce_mean(model(z))
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss

  return _repeated(step, x), base.variables(model)


@base.program(legacy=True)
def steps_in_a_loop() -> base.Numbers:
  """A `tf.while_loop` of training steps within one call."""
  weights = tf.Variable(tf.random.stateless_normal((8, 3), (1, 2)))
  slope = tf.Variable(tf.zeros((8, 3)))
  x, y = map(tf.constant, base.data(24, 8))

  @tf.function
  def train() -> Any:

    def body(i: Any, losses: Any) -> Any:
      with tf.GradientTape() as tape:
        loss = base.loss(y, tf.matmul(x, weights))
      slope.assign(.9 * slope + tape.gradient(loss, weights))
      weights.assign_sub(.1 * slope)
      return i + 1, losses.write(i, loss)

    losses = tf.TensorArray(tf.float32, 6)
    return tf.while_loop(lambda i, _: i < 6, body, (0, losses))[1].stack()

  before = tf.function(lambda: tf.reduce_sum(tf.exp(-weights**2)) * tf.
                       reduce_mean(tf.matmul(x, tf.sin(weights))))
  return [_repeated(train), _repeated(before)], [weights, slope]


@base.program(legacy=True)
def branches() -> base.Numbers:
  """A step with branches that depend on its loss and on a counter."""
  model, optimizer = _dense(12, 3), keras.optimizers.SGD(.1, momentum=.9)
  count = tf.Variable(0)
  x, y = map(tf.constant, base.data(24, 8))

  @tf.function
  def step(x: Any) -> Any:
    with tf.GradientTape() as tape:
      loss = base.loss(y, model(x, training=True))
      if count % 2 == 0:
        loss += tf.reduce_sum(model.trainable_variables[0]**2) * .01
    grads = tape.gradient(loss, model.trainable_variables)
    if tf.linalg.global_norm(grads) > .5:
      grads = tf.clip_by_global_norm(grads, .5)[0]
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    count.assign_add(
        tf.switch_case(count % 3, [lambda: 1, lambda: 2, lambda: 3]))
    return loss, tf.cond(loss > 1., lambda: tf.exp(loss), lambda: -loss)

  return _repeated(step, x), [count, *base.variables(model)]


@base.program(legacy=True)
def ragged() -> base.Numbers:
  """Rows of any length, looked up and averaged."""
  random = np.random.RandomState(0)
  rows = tf.ragged.constant(
      [random.randint(0, 20, 1 + i % 5).tolist() for i in range(24)])
  y = tf.constant(random.randint(0, 3, 24))
  table = tf.Variable(random.randn(20, 6).astype(np.float32))
  weights = tf.Variable(random.randn(6, 3).astype(np.float32))

  @tf.function
  def step(rows: Any) -> Any:
    with tf.GradientTape() as tape:
      found = tf.ragged.map_flat_values(tf.nn.embedding_lookup, table, rows)
      mean = tf.reduce_mean(found, axis=1) + tf.reduce_max(found, axis=1)
      loss = base.loss(y, tf.matmul(mean, weights))
    slopes = tape.gradient(loss, [table, weights])
    table.assign_sub(.1 * tf.convert_to_tensor(slopes[0]))
    weights.assign_sub(.1 * slopes[1])
    return loss, rows.row_lengths()

  return _repeated(step, rows), [table, weights]


@base.program(legacy=True)
def sparse() -> base.Numbers:
  """Sparse inputs and sparse updates."""
  random = np.random.RandomState(0)
  cells = sorted({(int(i), int(j)) for i, j in random.randint(0, 16, (40, 2))})
  x = tf.SparseTensor(cells,
                      random.randn(len(cells)).astype(np.float32), (16, 16))
  y = tf.constant(random.randint(0, 3, 16))
  weights = tf.Variable(random.randn(16, 3).astype(np.float32))
  rare = tf.Variable(tf.zeros((50, 3)))
  optimizer = keras.optimizers.Adam(.05)

  @tf.function
  def step(x: Any) -> Any:
    with tf.GradientTape() as tape:
      logits = tf.sparse.sparse_dense_matmul(x, weights)
      logits += tf.gather(rare, tf.range(16) * 3)
      loss = base.loss(y, logits) + tf.reduce_sum(x.values**2) * 1e-3
    slopes = tape.gradient(loss, [weights, rare])
    optimizer.apply_gradients(zip(slopes, [weights, rare]))
    return loss

  return _repeated(step, x), [weights, rare]


@base.program(legacy=True)
def scanned() -> base.Numbers:
  """A custom recurrent cell in `scan`, `map_fn` and `foldl`."""
  inner = tf.Variable(tf.random.stateless_normal((6, 6), (3, 4)) * .3)
  outer = tf.Variable(tf.random.stateless_normal((4, 6), (5, 6)))
  x = tf.constant(base.data(7, 5, 4)[0])

  @tf.function
  def step(x: Any) -> Any:
    with tf.GradientTape() as tape:
      states = tf.scan(
          lambda h, now: tf.tanh(tf.matmul(h, inner) + tf.matmul(now, outer)),
          x, tf.zeros((5, 6)))
      sizes = tf.map_fn(tf.norm, states)
      loss = tf.foldl(lambda total, size: total + size**2, sizes)
    slopes = tape.gradient(loss, [inner, outer])
    for variable, slope in zip((inner, outer), slopes):
      variable.assign_sub(.01 * slope)
    return loss, sizes

  return _repeated(step, x), [inner, outer]


@base.program(legacy=True)
def learned_to_learn() -> base.Numbers:
  """The gradient through inner training steps, and a Jacobian."""
  weights = tf.Variable(tf.random.stateless_normal((8, 3), (7, 8)))
  rate = tf.Variable(.1)
  x, y = map(tf.constant, base.data(24, 8))

  @tf.function
  def step(x: Any) -> Any:
    with tf.GradientTape() as outer:
      fast = tf.identity(weights)
      for _ in range(3):
        with tf.GradientTape() as inner:
          inner.watch(fast)
          loss = base.loss(y[:12], tf.matmul(x[:12], fast))
        fast -= rate * inner.gradient(loss, fast)
      after = base.loss(y[12:], tf.matmul(x[12:], fast))
    for variable, slope in zip((weights, rate),
                               outer.gradient(after, [weights, rate])):
      variable.assign_sub(.05 * slope)
    with tf.GradientTape() as tape:
      logits = tf.reduce_sum(tf.matmul(x, weights), axis=0)
    return after, tape.jacobian(logits, weights)

  return _repeated(step, x), [weights, rate]


@base.program(legacy=True)
def rewarded() -> base.Numbers:
  """A policy gradient: actions from a random stream, and rewards."""
  policy, optimizer = _dense(12, 3), keras.optimizers.Adam(.02)
  baseline = tf.Variable(0.)
  x, best = map(tf.constant, base.data(32, 8))

  @tf.function
  def step(x: Any) -> Any:
    with tf.GradientTape() as tape:
      logits = policy(x)
      action = tf.random.categorical(logits, 1, seed=5)[:, 0]
      reward = tf.cast(action == best, tf.float32)
      picked = tf.nn.sparse_softmax_cross_entropy_with_logits(action, logits)
      loss = tf.reduce_mean(picked * (reward - baseline))
    baseline.assign(.9 * baseline + .1 * tf.reduce_mean(reward))
    weights = policy.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss, action

  return _repeated(step, x), [baseline, *base.variables(policy)]


@base.program(legacy=True)
def words_of_text() -> base.Numbers:
  """Text that is split and looked up within the step."""
  table = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(['red', 'green', 'blue'], [1, 2, 3]),
      0)
  vectors = tf.Variable(tf.random.stateless_normal((4, 6), (1, 1)))
  weights = tf.Variable(tf.random.stateless_normal((6, 3), (2, 2)))
  text = tf.constant(['red blue', 'green', 'blue blue red', 'grey'] * 4)
  y = tf.constant([0, 1, 2, 1] * 4)

  @tf.function
  def step(text: Any) -> Any:
    with tf.GradientTape() as tape:
      ids = table.lookup(tf.strings.split(text).to_tensor('none'))
      logits = tf.matmul(tf.reduce_mean(tf.gather(vectors, ids), 1), weights)
      loss = base.loss(y, logits)
    for variable, slope in zip((vectors, weights),
                               tape.gradient(loss, [vectors, weights])):
      variable.assign_sub(.1 * tf.convert_to_tensor(slope))
    return loss, tf.strings.as_string(tf.argmax(logits, 1))

  return _repeated(step, text), [vectors, weights]


@base.program(legacy=True)
def saved_and_loaded() -> base.Numbers:
  """A module with a training step, saved, loaded and trained on."""

  class Module(tf.Module):

    def __init__(self) -> None:
      super().__init__()
      self.weights = tf.Variable(tf.random.stateless_normal((8, 3), (9, 9)))

    @tf.function(input_signature=[
        tf.TensorSpec((
            None,
            8)), tf.TensorSpec((None,), tf.int64)
    ])
    def train(self, x: Any, y: Any) -> Any:
      with tf.GradientTape() as tape:
        logits = tf.nn.elu(tf.matmul(tf.nn.l2_normalize(x, 1), self.weights))
        loss = base.loss(y, logits)
      self.weights.assign_sub(.2 * tape.gradient(loss, self.weights))
      return loss, tf.nn.softmax(logits)

  x, y = base.data(24, 8)
  module = Module()
  with tempfile.TemporaryDirectory() as folder:
    first = _repeated(module.train, x, y)
    tf.saved_model.save(module, folder)
    loaded = tf.saved_model.load(folder)
    second = _repeated(loaded.train, x, y)
  return [first, second], [module.weights, loaded.weights]
