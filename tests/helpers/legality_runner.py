"""Runs the graphs of `real_graphs` unplaced and placed, in a fresh process.

Usage: legality_runner.py OUTPUT [NAME ...]. Writes a line of JSON per graph:
the name, and the error or ''.
"""

from __future__ import annotations

import gc
import itertools
import json
import logging
import pathlib
import sys

gc.set_threshold(100_000)  # As in `conftest.py`.

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from gdp_grappler.cluster import local_devices  # noqa: E402
from gdp_grappler.graph import graph_def_io  # noqa: E402
from gdp_grappler.graph import source_graph  # noqa: E402
from gdp_grappler.placers import registry  # noqa: E402
from helpers import problems  # noqa: E402
from helpers import real_graphs  # noqa: E402

gc.freeze()
tf1 = tf.compat.v1
_SEEDS = (0, 1)
_turns = itertools.cycle(_SEEDS)
_NUM_DEVICES = 3
_NUM_STEPS = 3
# Programs with state outside of variables. Each run makes such a program anew.
_MADE_TWICE = ('lookup_tables', 'dataset_iterator', 'queues')


class _Notices(logging.Handler):
  """Records the messages of the pass."""

  def __init__(self):
    super().__init__()
    self.lines: list[str] = []
    logger = logging.getLogger('gdp_grappler')
    logger.addHandler(self)
    logger.propagate = False
    logger.setLevel(logging.INFO)

  def emit(self, record):
    self.lines.append(record.getMessage())

  def complaint(self) -> str:
    """Returns an error; '' if graphs were placed and none was refused."""
    refused = [
        line for line in self.lines
        if 'left as it was' in line and 'XLA compiles' not in line
    ]
    if refused:
      return refused[0]
    placed = any('placed by' in line for line in self.lines)
    return '' if placed else 'no graph was placed'


def _option(seed):
  tf.config.optimizer.set_experimental_options({
      'gdp_placement':
          (False if seed is None else
           {'placer': 'random', 'keep_best': False, 'seed': seed, 'min_ops': 4})
  })


def _run_function(make, seed=None):
  _option(seed)
  tf.keras.utils.set_random_seed(1)
  step = make()
  return [[np.asarray(t) for t in tf.nest.flatten(step())]
          for _ in range(_NUM_STEPS)]


def check_function(make, notices) -> str:
  """Compares runs with and without the pass, with the next seed."""
  seed = next(_turns)
  if make.__name__ in _MADE_TWICE:
    expected = _run_function(make)
    notices.lines.clear()
    found = _run_function(make, seed)
  else:
    expected, found = _run_once_traced(make, seed, notices)
  why = _difference(expected, found) or notices.complaint()
  return why and f'seed {seed}: {why}'


def _run_once_traced(make, seed, notices):
  """Returns results without and with placement, of one trace to save time.

  All state has to be in variables that `make` creates.
  """
  variables = []

  def create(following, **kwargs):
    variables.append(following(**kwargs))
    return variables[-1]

  tf.keras.utils.set_random_seed(1)
  with tf.variable_creator_scope(create):
    step = make()
  start = [variable.numpy() for variable in variables]
  results = []
  for each in (None, seed):
    _option(each)
    notices.lines.clear()
    for variable, value in zip(variables, start):
      variable.assign(value)
    context.context().clear_kernel_cache()
    results.append([[np.asarray(t) for t in tf.nest.flatten(step())]
                    for _ in range(_NUM_STEPS)])
  return results


def _build(make):
  """Returns a graph, names of fetches and initializers, and values to feed."""
  graph = tf.Graph()
  with graph.as_default():
    tf1.set_random_seed(1)
    fetches, feed = make()
    first = tf1.group(tf1.global_variables_initializer())
    second = tf1.group(tf1.tables_initializer())
  return (graph, [f.name for f in fetches], [first.name, second.name],
          {tensor.name: value for tensor, value in feed.items()})


def _run_session(graph, fetches, initializers, feed, optimize=False):
  config = tf1.ConfigProto(allow_soft_placement=False,
                           device_count={'CPU': _NUM_DEVICES})
  config.graph_options.rewrite_options.disable_meta_optimizer = not optimize
  with tf1.Session(graph=graph, config=config) as session:
    for name in initializers:
      session.run(name)
    return [[
        np.asarray(v) for v in session.run(fetches, feed) if v is not None
    ] for _ in range(_NUM_STEPS)]


def _placed_offline(graph, fetches, initializers, feed, seed):
  definition = graph.as_graph_def()
  source = source_graph.SourceGraph(
      'graph', definition, tuple(_op(f) for f in feed),
      tuple(_op(f) for f in (*fetches, *initializers)))
  op_graph = graph_def_io.read(source)
  cluster = local_devices.local_cluster()
  placement = registry.create('random').place(
      problems.make(op_graph, cluster, seed=seed))
  if placement.violations(op_graph):
    raise ValueError(placement.violations(op_graph)[0].message)
  result = tf.Graph()
  with result.as_default():
    tf1.import_graph_def(
        graph_def_io.write(definition, placement.device_strings()), name='')
  return result


def _op(tensor_name: str) -> str:
  return tensor_name.split(':')[0]


def check_session(make, notices) -> str:
  """Compares runs placed offline and by the pass with runs without placement.

  The pass places the graph as that of a running program. Grappler's other
  optimizers may change a result. So Grappler is on, or off, in both runs of a
  comparison.
  """
  _option(None)
  graph, *rest = _build(make)
  offline, live = _SEEDS
  placed = _placed_offline(graph, *rest, seed=offline)
  why = _difference(_run_session(graph, *rest), _run_session(placed, *rest))
  if why:
    return f'offline, seed {offline}: {why}'
  expected = _run_session(graph, *rest, optimize=True)
  _option(live)
  notices.lines.clear()
  why = _difference(expected, _run_session(*_build(make), optimize=True))
  _option(None)
  return why or notices.complaint()


def _difference(expected, found) -> str:
  for step, (values, others) in enumerate(zip(expected, found, strict=True)):
    for i, (a, b) in enumerate(zip(values, others, strict=True)):
      if not _same_bits(a, b):
        return f'step {step}, result {i}: {a} became {b}'
  return ''


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
  if a.dtype == object:  # Texts. The bytes of the array are addresses.
    return np.array_equal(a, b)
  return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def main(output: str, names: list[str]):
  """Checks the graphs of these names; without names, all graphs."""
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * _NUM_DEVICES)
  tf.config.list_logical_devices()
  notices = _Notices()
  with open(output, 'w', buffering=1) as file:
    for check, graphs in ((check_function, real_graphs.FUNCTIONS),
                          (check_session, real_graphs.V1_GRAPHS)):
      for name, make in graphs.items():
        if names and name not in names:
          continue
        try:
          verdict = check(make, notices)
        except Exception as error:
          verdict = f'{type(error).__name__}: {error}'
        file.write(json.dumps([name, verdict]) + '\n')


if __name__ == '__main__':
  main(sys.argv[1], sys.argv[2:])
