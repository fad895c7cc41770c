"""Messages to users about XLA, and about functions that are not placed.

One argument: 'one' for a program with one device.
"""

import logging
import sys

import common
import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

layers = keras.layers
X = np.random.RandomState(0).randn(32, 8).astype(np.float32)
Y = np.zeros(32)


def fit(model):
  history = model.fit(X, Y, epochs=2, batch_size=16, verbose=0, shuffle=False)
  return history.history['loss']


def is_compiled(model):
  """Whether XLA compiles the whole train step."""
  context.context().clear_kernel_cache()
  context.context().enable_graph_collection()
  fit(model)
  graphs = context.context().export_run_metadata().function_graphs
  context.context().disable_graph_collection()
  return any('_XlaMustCompile' in node.attr and node.attr['_XlaMustCompile'].b
             for graph in graphs for part in graph.partition_graphs
             for node in part.node)


def auto(lines):
  """Runs a fit as on a machine with a GPU."""
  stock = keras.Model._resolve_auto_jit_compile
  keras.Model._resolve_auto_jit_compile = lambda self: True
  common.set_option(False)
  before, model = common.compiled(), common.compiled()
  results = {'losses': [fit(before)], 'compiled': [is_compiled(before)]}
  lines.take()
  common.set_option(common.RANDOM)
  results['losses'].append(fit(model))
  results['compiled'].append(is_compiled(before))
  results['kept'] = model.jit_compile
  results['lines'] = lines.take()
  common.set_option(False)
  results['compiled'].append(is_compiled(before))
  common.set_option(common.RANDOM)
  keras.Model._resolve_auto_jit_compile = stock
  return results


def explicit(lines):
  lines.take()
  model = common.compiled(jit_compile=True)
  fit(model)
  model.evaluate(X, Y, verbose=0)
  model.predict(X, verbose=0)
  return lines.take()


def function(lines):

  @tf.function(jit_compile=True)
  def double(x):
    return x * 2.

  double(tf.ones(3))
  double(tf.ones(4))
  return lines.take()


def small(lines):
  model = keras.Sequential([layers.Input((8,)), layers.Dense(1)], name='small')
  lines.take()
  model.predict(X, verbose=0)
  return lines.take()


def every_call(lines):
  """Runs two fits, evaluations and predictions of two models."""
  for _ in range(2):
    model = common.compiled()
    fit(model)
    model.evaluate(X, Y, verbose=0)
    model.predict(X, verbose=0)
  return lines.take()


def one_batch(lines):
  """Runs single batches, without a fit before."""
  model = common.compiled()
  model.train_on_batch(X, Y)
  model.test_on_batch(X, Y)
  model.predict_on_batch(X)
  return lines.take()


def misspelled(lines):
  """Runs a model and another function with a map of layers of neither."""
  common.set_option({'plan': {'absent': 'CPU:1'}})

  @tf.function
  def own(x):
    for _ in range(9):
      x = tf.sin(x) @ x
    return x

  own(tf.ones((3, 3)))
  model = common.compiled()
  fit(model)
  model.evaluate(X, Y, verbose=0)
  model.predict(X, verbose=0)
  common.set_option(common.RANDOM)
  return lines.take()


def watched(lines):
  import gdp_grappler
  callback = gdp_grappler.PlacementCallback(verbose=False)
  model = common.compiled()
  model.fit(X, Y, epochs=2, batch_size=8, verbose=0, callbacks=[callback])
  lines.take()
  return [[
      sum(e.placed_ops.values()), e.moved_variables, e.predicted_s, e.measured_s
  ] for e in callback.epochs]


def main():
  if sys.argv[1:] != ['one']:
    common.make_devices()
  lines = common.Lines()
  logging.getLogger('gdp_grappler').addHandler(lines)
  common.set_option(common.RANDOM)
  if sys.argv[1:] == ['one']:
    common.finish(every_call=every_call(lines))
    return
  programs = (auto, explicit, function, small, every_call, one_batch,
              misspelled, watched)
  common.finish(**{program.__name__: program(lines) for program in programs})


if __name__ == '__main__':
  main()
