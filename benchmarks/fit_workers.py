r"""What `gdp_placement` does for `fit` over two servers, measured.

Run it from the repository, on a machine with nothing else to do:

  python -m benchmarks.fit_workers --json module:function ...

Each function returns a compiled Keras model; without any, the three of this
file, which are those of the fidelity study. Two servers, each on cores of its
own, are reached with `experimental_connect_to_host`; the model is made on the
first one. It is trained as it is, then with the option, guard included. Prints
a list of {"graph", "one_server_s", "placed_s", "predicted_s"}, seconds per
step, medians; without --json, a table. With --page=FILE the table replaces the
one in a page of Markdown, between two comments.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import sys
import tempfile
from typing import Any, Callable, Sequence

import keras
import tensorflow as tf

from benchmarks import tables
from benchmarks import timed_fits
from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.graph.sources import origin
from gdp_grappler.graph.sources import tracing_worker

layers = keras.layers
MODELS = tuple(
    f'benchmarks.fit_workers:{name}' for name in ('mlp', 'mixture', 'lstm'))
_TITLE = 'Workers'
_HEAD = ('graph', 'one server', 'placed', 'gain', 'predicted')
_STEPS = 15
# More than the guard times, both ways.
_UNDER_GUARD = 20
# The CPU of this process, which only waits: how much slower it is said to be.
_CLIENT, _SLOWER = '/job:localhost/replica:0/task:0/device:CPU:0', 1000.


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
  """Four recurrent layers, unrolled, that predict the next word."""
  words = keras.Input((8,), batch_size=64, dtype='int32')
  hidden = layers.Embedding(2000, 320)(words)
  for _ in range(4):
    hidden = layers.LSTM(320, return_sequences=True, unroll=True)(hidden)
  return _classifier(words, hidden, 2000)


def _classifier(inputs: keras.KerasTensor, hidden: keras.KerasTensor,
                classes: int) -> keras.Model:
  model = keras.Model(inputs, layers.Dense(classes)(hidden))
  model.compile(keras.optimizers.SGD(1e-3, .9),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  return model


def main(argv: Sequence[str] | None = None) -> int:
  """Prints the table or the list.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, or 2 for bad input.
  """
  parser = tables.parser('fit_workers', __doc__)
  parser.add_argument('models', nargs='*', metavar='MODULE:FUNCTION',
                      default=MODELS)
  arguments = tables.parse(parser, argv)
  return tables.show(arguments, _TITLE, lambda: _table(arguments.models))


def _rows(models: Sequence[str]) -> list[dict[str, Any]]:
  """What is measured, by model.

  Raises:
    GdpError: a name is that of no compiled Keras model, or the servers do not
      come up.
  """
  for model in models:
    if not origin.is_function(model):
      raise errors.InvalidGraphError(
          f'"{model}" is no module:function. Name one that returns a compiled '
          'Keras model.')
  with (local_workers.LocalWorkers(2) as workers, tempfile.TemporaryDirectory()
        as folder):
    tf.config.experimental_connect_to_host(list(workers.addresses))
    path = pathlib.Path(folder) / 'workers.json'
    path.write_text(_cluster().to_json(), encoding='utf-8')
    return [_measure(model, workers.device_names[0], path) for model in models]


def _cluster() -> cluster_lib.Cluster:
  """The two servers, and the client, which is not to compute."""
  workers = local_workers.cluster(2)
  names = [_CLIENT, *workers.device_names]
  size = workers.devices[0].memory_bytes
  cores = max(1, len(os.sched_getaffinity(0)) // workers.num_devices)
  result = remote_devices.of_devices('two local servers',
                                     [(name, size) for name in names], cores)
  return dataclasses.replace(
      result, devices=tuple(
          dataclasses.
          replace(device, peak_flops=device.peak_flops
                  / _SLOWER, bandwidth_bytes_per_s=device.bandwidth_bytes_per_s
                  / _SLOWER) if device.name == _CLIENT else device
          for device in result.devices))


def _measure(path: str, device: str, cluster: pathlib.Path) -> dict[str, Any]:
  """The row of one model."""
  with tf.device(device):
    keras.utils.set_random_seed(0)
    model = _compiled(path)
    model.optimizer.build(model.trainable_variables)
  model.train_step = _on(device, model.train_step)
  data = timed_fits.batch(model)
  _switch(False)
  one_server_s = timed_fits.step_s(model, data, _STEPS)
  _switch({'guard': True, 'cluster': str(cluster)})
  timed_fits.run(model, data, _UNDER_GUARD)
  placed_s = timed_fits.step_s(model, data, _STEPS)
  report = model.train_function.report()
  _switch(False)
  return {
      'graph': path, 'one_server_s': one_server_s, 'placed_s': placed_s,
      'predicted_s': report.predicted_s
  }


def _compiled(path: str) -> keras.Model:
  """The model.

  Raises:
    InvalidGraphError: there is none, or `fit` does not know what to do with it.
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
  """A step that is all on one device, unless the pass moves it.

  Around `fit` a scope would do so too, but hide the step from the pass.
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
      tables.milliseconds(row['one_server_s']),
      tables.milliseconds(row['placed_s']),
      f'{row["one_server_s"] / row["placed_s"]:.2f}x',
      tables.milliseconds(row['predicted_s'])
  ]


if __name__ == '__main__':
  sys.exit(main())
