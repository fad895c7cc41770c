"""Comparisons of ways to run a step for which Keras would choose XLA.

The devices are logical CPUs. A fork has one GPU, which is emulated.
"""

import json
import os

# Without this flag XLA makes no clusters on CPUs.
os.environ['TF_XLA_FLAGS'] = '--tf_xla_cpu_global_jit'

import logging
import tempfile

import common
import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

X = np.random.RandomState(0).randn(320, 8).astype(np.float32)
Y = np.zeros(320)
GUARDED = {**common.RANDOM, 'guard': True}
_CLUSTERS = 'placed, with XLA inside each device'


def fit(model, epochs=4):
  history = model.fit(X, Y, epochs=epochs, batch_size=16, verbose=0,
                      shuffle=False)
  return history.history['loss']


def way(model):
  return model.train_function.report().way


def let_win(name):
  """Makes one way the fastest by faking its measured time; all steps run."""
  from gdp_grappler.plugin.fitting import ways
  stock = ways.WayComparison.note

  def note(self, measured, figures):
    seconds = {'with XLA': 2.5, 'placed': 2., 'as it was': 3., _CLUSTERS: 4.}
    seconds[name] = 1.
    stock(self, measured,
          ways.Figures(seconds[measured.value], 5, figures.compile_s))

  ways.WayComparison.note = note
  return lambda: setattr(ways.WayComparison, 'note', stock)


def ended(name, lines, then_more=True, **kwargs):
  """Runs a fit in which a way is the fastest, and then a switched fit."""
  restore = let_win(name)
  common.set_option(GUARDED)
  model = common.compiled(**kwargs)
  lines.take()
  context.context().enable_graph_collection()
  losses = fit(model)
  graphs = context.context().export_run_metadata().function_graphs
  context.context().disable_graph_collection()
  results = {
      'losses':
          losses, 'way':
              way(model), 'lines':
                  lines.take(), 'clustered':
                      sorted({
                          node.device.rsplit('device:')[-1] for graph in graphs
                          for part in graph.partition_graphs
                          for node in part.node if node.op == '_XlaRun'
                      }),
      'variables':
          sorted(
              {v.value.device.rsplit('device:')[-1] for v in model.variables})
  }
  if then_more:
    model.evaluate(X, Y, verbose=0)
    results['evaluated'] = lines.take()
    common.set_option(False)
    fit(model, 1)
    common.set_option(GUARDED)
    fit(model, 1)
    results['again'] = way(model), lines.take()
  common.set_option(False)
  restore()
  return results


def stays(option, lines):
  """Runs a fit whose option leaves nothing to compare."""
  common.set_option(option)
  model = common.compiled()
  lines.take()
  results = {'losses': fit(model), 'way': way(model), 'lines': lines.take()}
  common.set_option(False)
  return results


def without_xla(lines):
  """Runs fits that XLA must not compile, though Keras would choose it."""
  common.set_option(False)
  return {
      'stock': fit(common.compiled(jit_compile=False)),
      'apply': stays({**common.RANDOM, 'xla': 'off'}, lines),
      'report': stays({**common.RANDOM, 'xla': 'off', 'mode': 'report'}, lines),
  }


def shared(option):
  """Returns losses of two models with a common layer, trained in turn."""
  common.set_option(option)
  keras.utils.set_random_seed(0)
  inputs = keras.Input((8,))
  hidden = keras.layers.Dense(16, 'relu', name='shared')(inputs)
  models = [
      keras.Model(inputs,
                  keras.layers.Dense(1)(hidden)),
      keras.Model(inputs,
                  keras.layers.Dense(1)(keras.layers.Dense(8)(hidden)))
  ]
  for model in models:
    model.compile(keras.optimizers.SGD(.01, .9), 'mse')
  return [fit(model) for model in (*models, *models)]


def in_turn(lines):
  """Trains two such models, whose placed steps are the fastest.

  The plan moves the common layer.
  """
  expected = shared(False)
  restore = let_win('placed')
  lines.take()
  results = {
      'stock': expected,
      'losses': shared({'plan': {'shared': 'CPU:1'},
                        'guard': True}), 'lines': lines.take()
  }
  common.set_option(False)
  restore()
  return results


def switched_on_late():
  """Returns the devices of a model whose first step ran without the option."""
  common.set_option(False)
  model = common.compiled()
  fit(model, 1)
  restore = let_win('placed')
  common.set_option(GUARDED)
  fit(model)
  found = {v.value.device.rsplit('device:')[-1] for v in model.variables}
  common.set_option(False)
  restore()
  return sorted(found)


def loaded():
  """Returns the way of a model that was loaded from a file."""
  restore = let_win('placed')
  common.set_option(GUARDED)
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, 'net.keras')
    common.compiled().save(path)
    model = keras.models.load_model(path)
  fit(model)
  found = way(model)
  common.set_option(False)
  restore()
  return found


def over_cpus(lines, one_gpu):
  keras.Model._resolve_auto_jit_compile = lambda self: True
  common.set_option(False)
  stock = fit(common.compiled())
  ways = ('with XLA', 'placed', _CLUSTERS)
  ends = {name: ended(name, lines) for name in ways}
  several = ended('placed', lines, False, steps_per_execution=2)
  common.finish(stock=stock, ends=ends, several=several, shared=in_turn(lines),
                late=switched_on_late(), loaded=loaded(),
                without_xla=without_xla(lines), no_gain=stays(True, lines),
                report=stays({**common.RANDOM, 'mode': 'report'},
                             lines), kept=stays({**GUARDED, 'xla': 'keep'},
                                                lines), one_gpu=one_gpu)


def with_one_gpu(lines):
  """Runs on the CPU of a program with an emulated GPU, which cannot compute."""
  from gdp_grappler.cluster import presets
  from gdp_grappler.evaluation.emulation import machine
  from gdp_grappler.evaluation.emulation import native_gpus
  _ = native_gpus.NativeGpus(machine.Machine(presets.preset('1xP100')))
  results = [whole_program(option) for option in (False, True)]
  return {
      'off': results[0], 'on': results[1], 'lines': lines.take(),
      'devices': len(tf.config.list_logical_devices())
  }


def whole_program(option):
  """Returns for each kind of a user's call whether XLA compiles it."""
  from gdp_grappler.graph.sources import captures
  common.set_option(option)
  with tf.device('/CPU:0'):
    model = common.compiled()
    losses = fit(model, 1)
    scores = model.evaluate(X, Y, verbose=0)
    answers = model.predict(X, verbose=0)
    loop = tf.function(lambda x: tf.reduce_sum(tf.tanh(x) * x - 1.))
    options = context.context().function_call_options
    return {
        'jit_compile': model.jit_compile, 'losses': losses, 'scores': scores,
        'answers': answers.tolist(), 'loop': float(loop(tf.constant(X))),
        'compiled': [
            captures.is_compiled(vars(function).get('_stock', function))
            for function in (model.train_function, model.test_function,
                             model.predict_function)
        ], 'has_pass': b'gdp_placement' in options.config_proto_serialized
    }


def forked(function, *args):
  """Returns the result of a call in a fork, whose TensorFlow begins anew."""
  reading, writing = os.pipe()
  process = os.fork()
  if not process:
    with open(writing, 'w') as file:
      json.dump(function(*args), file)
    os._exit(0)
  os.close(writing)
  with open(reading) as file:
    text = file.read()
  assert not os.waitpid(process, 0)[1]
  return json.loads(text)


def main():
  lines = common.Lines()
  logging.getLogger('gdp_grappler').addHandler(lines)
  one_gpu = forked(with_one_gpu, lines)
  common.make_devices()
  over_cpus(lines, one_gpu)


if __name__ == '__main__':
  main()
