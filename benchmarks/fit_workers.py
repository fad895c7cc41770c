r"""Measures `fit` over two servers with and without `gdp_placement`.

Run it from the repository, on a machine with nothing else to do:

  python -m benchmarks.fit_workers --json module:function ...

Each function returns a compiled Keras model. The default is the three models of
this file, which are those of the fidelity study. There are two servers, each on
cores of its own. The program connects to them by
`experimental_connect_to_host`, and makes the model on the first server. The
model trains without the option and with the option, guard included. The two
ways take turns, so that a drift of the machine affects both. Prices come from a
profile of the step on two such servers and from the measured network between
them. The overhead of `fit`, measured with a nearly empty step, is part of both
predictions.

With --json, prints a list of {"graph", "one_server_s",
"one_server_predicted_s", "placed_s", "placed_step_s", "predicted_s"}: medians
of seconds per step. If the guard undoes the placement, "placed_s" is the step
after that, and "placed_step_s" is the placed step that the guard measured.
Without --json, prints a table. Its errors are predicted over measured, less 1,
and refer to "placed_step_s". With --page=FILE the table replaces the table
between two comments of a page in Markdown.
"""

from __future__ import annotations

import dataclasses
import pathlib
import statistics
import sys
import tempfile
from typing import Any, Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from benchmarks import plugin
from benchmarks import tables
from benchmarks import timed_fits
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.link_timing import ping_pong
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.profiling import profiler
from gdp_grappler.graph.sources import origin
from gdp_grappler.graph.sources import sources
from gdp_grappler.graph.sources import tracing_worker

layers = keras.layers
MODELS = tuple(
    f'benchmarks.fit_workers:{name}' for name in ('mlp', 'mixture', 'lstm'))
_TITLE = 'Workers'
_HEAD = ('graph', 'one server', 'predicted', 'error', 'placed', 'predicted',
         'error', 'gain')
_STEPS = 15  # Steps of a turn.
_TURNS = 3  # Turns per way. The ways alternate.
# Steps before the timed ones. The guard of `fit` has decided by then.
_UNDER_GUARD = 20
_SERVERS = 2  # Servers on this machine that compute.
# The CPU of this process, which only waits for the servers.
_CLIENT = cluster_lib.local_name('CPU', 0)
# The problem describes this CPU as this many times slower than a server, so
# placers give it nothing to compute.
_SLOWER = 1000.


def mlp() -> keras.Model:
  """Two branches of dense layers."""
  features = keras.Input((512,), batch_size=128)
  ends = []
  for _ in range(2):
    hidden = features
    for _ in range(4):
      hidden = layers.Dense(1024, 'relu')(hidden)
    ends.append(hidden)
  return _classifier(features, layers.Concatenate()(ends), 100)


def mixture() -> keras.Model:
  """Two layers of four experts, perceptrons mixed by a gate."""
  features = keras.Input((384,), batch_size=128)
  hidden = features
  for _ in range(2):
    gate = layers.Dense(4, 'softmax')(hidden)
    outputs = []
    for expert in range(4):
      inner = layers.Dense(1024, 'relu')(layers.Dense(1024, 'relu')(hidden))
      outputs.append(layers.Dense(384)(inner) * gate[:, expert:expert + 1])
    hidden = layers.add([hidden, *outputs])
  return _classifier(features, hidden, 100)


def lstm() -> keras.Model:
  """Four recurrent layers, unrolled, that predict the next word.

  Each time step is an op of its own, as in the graph of `make fidelity`.
  `keras.layers.LSTM` stacks the outputs of all time steps, and the next layer
  waits for the last of them.
  """
  steps, units, words = 8, 320, 2000
  ids = keras.Input((steps,), batch_size=64, dtype='int32')
  embedded = layers.Embedding(words, units)(ids)
  hidden = [embedded[:, step] for step in range(steps)]
  for _ in range(4):
    cell, states = layers.LSTMCell(units), [keras.ops.zeros((64, units))] * 2
    for step in range(steps):
      hidden[step], states = cell(hidden[step], states)
  classes = layers.Dense(words)
  logits = keras.ops.stack([classes(output) for output in hidden], 1)
  return _compile(ids, logits)


def _classifier(inputs: keras.KerasTensor, hidden: keras.KerasTensor,
                classes: int) -> keras.Model:
  return _compile(inputs, layers.Dense(classes)(hidden))


def _compile(inputs: keras.KerasTensor,
             logits: keras.KerasTensor) -> keras.Model:
  model = keras.Model(inputs, logits)
  model.compile(keras.optimizers.SGD(1e-3, .9),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  return model


def _rows(models: Sequence[str]) -> list[dict[str, Any]]:
  """Measures each model.

  Raises:
    GdpError: a name is that of no compiled Keras model, or the servers do not
      come up.
  """
  plugin.require()
  for model in models:
    if not origin.is_function(model):
      raise errors.InvalidGraphError(
          f'"{model}" is no module:function. Name one that returns a compiled '
          'Keras model.')
    _compiled(model)  # Raises the error before anything is measured.
  with tempfile.TemporaryDirectory() as folder:
    cluster, timed = pathlib.Path(folder) / 'workers.json', _cluster()
    profiles = progress.of_each(
        'profiling', enumerate(models),
        lambda item: _profile(item[1],
                              pathlib.Path(folder) / f'profile_{item[0]}.json'),
        lambda item: item[1])
    with local_workers.LocalWorkers(_SERVERS) as workers:
      tf.config.experimental_connect_to_host(list(workers.addresses))
      step_s = _empty_step_s(workers.device_names[0])
      cluster_file.write(str(cluster),
                         dataclasses.replace(timed, step_s=step_s))
      return progress.of_each(
          'measuring', zip(models, profiles),
          lambda item: _measure(item[0], workers.device_names[0], {
              'guard': True, 'cluster': str(cluster), 'profile': str(item[1])
          }), lambda item: item[0])


def _cluster() -> cluster_lib.Cluster:
  """Returns the two timed servers, and the client, which must not compute."""
  with local_workers.LocalWorkers(_SERVERS) as running:
    workers = local_workers.cluster(_SERVERS)
    workers = ping_pong.apply(workers,
                              ping_pong.measure(workers, running.target))
  client = dataclasses.replace(
      workers.devices[0], name=_CLIENT, compute='client', memory='client',
      peak_flops=workers.devices[0].peak_flops / _SLOWER)
  pairs = [pair for d in workers.devices for pair in ((client, d), (d, client))]
  return dataclasses.replace(
      workers, devices=(client, *workers.devices),
      links=(*(remote_devices.link(*pair) for pair in pairs), *workers.links))


def _profile(model: str, path: pathlib.Path) -> pathlib.Path:
  """Writes the profile of a step of the model, and returns its path."""
  step = sources.read(origin.Origin(model), batch_size=timed_fits.BATCH)
  profile = profiler.profile_local_workers(step, _SERVERS,
                                           batch_size=timed_fits.BATCH,
                                           refresh=True)
  client = dataclasses.replace(
      profile.devices[0], name=_CLIENT, bus='', contention=0.,
      seconds=profile.devices[0].seconds
      * np.where(profile.flops > 0, _SLOWER, 1.))
  dataclasses.replace(profile, devices=(client, *profile.devices)).save(path)
  return path


def _empty_step_s(device: str) -> float:
  """Returns the seconds of a nearly empty step of `fit` on a server."""
  with tf.device(device):
    inputs = keras.Input((1,), batch_size=1)
    model = keras.Model(inputs, layers.Dense(1)(inputs))
    model.compile(keras.optimizers.SGD(1e-3, .9), 'mse')
    model.optimizer.build(model.trainable_variables)
  model.train_step = _on(device, model.train_step)
  return statistics.median(
      timed_fits.steps_s(model, timed_fits.batch(model), _STEPS * _TURNS))


def _measure(path: str, device: str, option: dict[str, Any]) -> dict[str, Any]:
  """Measures one model, and returns its row."""
  with tf.device(device):
    keras.utils.set_random_seed(0)
    model = _compiled(path)
    model.optimizer.build(model.trainable_variables)
  model.train_step = _on(device, model.train_step)
  data = timed_fits.batch(model)
  _switch(option)
  timed_fits.run(model, data, _UNDER_GUARD)
  seconds: dict[bool, list[float]] = {False: [], True: []}
  for _ in range(_TURNS):
    for is_on, turn in seconds.items():
      _switch(is_on and option)
      turn += timed_fits.steps_s(model, data, _STEPS)
  report = model.train_function.report()
  _switch(False)
  return {
      'graph': path, 'one_server_s': statistics.median(seconds[False]),
      'one_server_predicted_s': report.predicted_before_s,
      'placed_s': statistics.median(seconds[True]), 'placed_step_s':
          (statistics.median(seconds[True]) if report.placed_ops else
           report.placed_s), 'predicted_s': report.predicted_s
  }


def _compiled(path: str) -> keras.Model:
  """Returns the compiled model of a name.

  Raises:
    InvalidGraphError: there is no such model, or it is not compiled.
  """
  model = tracing_worker.call_function(path)
  if not isinstance(model, keras.Model) or not model.compiled:
    raise errors.InvalidGraphError(
        f'{path} returned {type(model).__name__}, which is not a compiled '
        'Keras model. Call compile.')
  if not model.inputs or not model.outputs:
    raise errors.InvalidGraphError(
        f'{path}: the model does not know its inputs. Start it with '
        'keras.Input.')
  return model


def _on(device: str, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
  """Makes a train step whose ops are on one device unless the pass moves them.

  A device scope around `fit` would do the same, but would hide the step from
  the pass.
  """

  def on_device(data: Any) -> Any:
    with tf.device(device):
      return step(data)

  return on_device


def _switch(value: Any) -> None:
  tf.config.optimizer.set_experimental_options({'gdp_placement': value})


def _table(models: Sequence[str]) -> tables.Table:
  rows = _rows(models)
  return tables.Table('two servers on this machine, measured', _HEAD,
                      [_cells(row) for row in rows], rows)


def _cells(row: dict[str, Any]) -> list[str]:
  return [
      row['graph'],
      *_compared(row['one_server_predicted_s'], row['one_server_s']),
      tables.milliseconds(row['placed_s']),
      *_compared(row['predicted_s'], row['placed_step_s'])[1:],
      f'{row["one_server_s"] / row["placed_s"]:.2f}x'
  ]


def _compared(predicted_s: float | None, measured_s: float | None) -> list[str]:
  """Returns measured and predicted times and the error; '-' if one is None."""
  error = '-'
  if predicted_s is not None and measured_s is not None:
    error = f'{predicted_s / measured_s - 1:+.0%}'
  return [*map(tables.milliseconds, (measured_s, predicted_s)), error]


main = tables.program(
    'fit_workers', __doc__, _TITLE, lambda given: _table(given.models),
    tables.option('models', nargs='*', metavar='MODULE:FUNCTION',
                  default=MODELS))

if __name__ == '__main__':
  sys.exit(main())
