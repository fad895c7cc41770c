"""Lists all readers of files, each with a function that writes a valid file.

A new reader needs an entry in `READERS`. Then the tests and the fuzz also read
damaged files of its kind.
"""

from __future__ import annotations

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import dataclasses
import functools
import hashlib
import pathlib
import re
import shutil
from typing import Callable, Collection
import warnings
import zipfile

from google.protobuf import text_format
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.cluster import calibrated
from gdp_grappler.cluster import calibration
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import plan
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation.costs import profile as profile_lib
from gdp_grappler.evaluation.measuring import measurement_cache
from gdp_grappler.evaluation.profiling import profiler
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.sources import graph_files
from gdp_grappler.graph.sources import origin
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import shipped_policy
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.problems import reading
from gdp_grappler.problems import request
from gdp_grappler.workloads import capture
from helpers import calibrations
from helpers import damage
from helpers import profiles
from placer_model.benchmark import records
from placer_model.pretraining import logs
from placer_model.training import checkpoints

_TESTS = pathlib.Path(__file__).parents[1]
_CAPTURED = _TESTS / 'testdata/dense_train_step.pb'
_COSTS = b'''node { name: "a" id: 1 output_info { size: 8 } compute_cost: 3000 }
node { name: "b" id: 2 compute_cost: 4000 input_info { preceding_node: 1 } }
node { name: "c" id: 3 compute_cost: 1 control_input: 1 control_input: 2 }
'''

# Names of all obstacles.
_ANYTHING = frozenset(damage.OBSTACLES)


@dataclasses.dataclass(frozen=True)
class Reader:
  """A kind of file.

  Attributes:
    write: Writes a valid file, and the files that it needs.
    read: Reads the file as programs do; raises a `GdpError` if it is invalid.
    taken: Names of `damage.OBSTACLES` that the reader takes for a missing file.
  """

  write: Callable[[pathlib.Path], object]
  read: Callable[[pathlib.Path], object]
  taken: Collection[str] = ()


class _Net(tf.Module):
  """A module with a loop, a variable and its update."""

  def __init__(self) -> None:
    super().__init__()
    self.weight = tf.Variable(tf.ones((5, 5)))

  @tf.function(input_signature=[tf.TensorSpec((None, 5), name='x')])
  def place(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
    _, x = tf.while_loop(lambda i, _: i < 3, lambda i, x:
                         (i + 1, tf.matmul(x, self.weight)), (0, x))
    self.weight.assign_add(self.weight)
    return {'y': x}


def _read_graph(path: pathlib.Path) -> None:
  """Reads a graph as `gdp place` does before it places."""
  asked = request.Request(str(path))
  step = reading.read(asked, lambda _: presets.preset('2xP100'), lambda _: None)
  _place(step)


def _place(step: step_lib.Step) -> None:
  problem = step.problem()
  placement = registry.create('round_robin').place(problem)
  step.simulator().evaluate(step.graph, placement)
  # What a plan says of its graph.
  assert step.graph.fingerprint and step.graph.name.isprintable()


@functools.cache
def _graph() -> op_graph.OpGraph:
  return graph_def_io.read(sources.load(str(_CAPTURED)))


def _write_keras(path: pathlib.Path) -> None:
  with zipfile.ZipFile(path, 'w') as archive:
    for name in ('metadata.json', 'config.json', 'model.weights.h5'):
      archive.writestr(name, '{}')


def _read_kind(path: pathlib.Path) -> None:
  """Checks a model as before Keras reads it, in a process of its own."""
  graph_files.read(origin.Origin(str(path)))


def _read_plan(path: pathlib.Path) -> None:
  plan.load(str(path), _graph())


def _read_policy(path: pathlib.Path) -> None:
  # The cache of `learned` would return a policy that was loaded before.
  learned._load(str(path.parent))


def _read_claim(path: pathlib.Path) -> None:
  checkpoints.claim(path.parent, {'seed': 0, 'train': {'rollouts': 4}})


def _meta_graph() -> meta_graph_pb2.MetaGraphDef:
  return meta_graph_pb2.MetaGraphDef.FromString(_CAPTURED.read_bytes())


def _write_graph_json(path: pathlib.Path) -> None:
  page = (_TESTS.parent / 'docs/graph_json.md').read_text()
  found = re.search(r'```json\n(.*?)```', page, re.DOTALL)
  assert found is not None
  path.write_text(found[1])


def _write_plan(path: pathlib.Path) -> None:
  step = step_lib.Step(_graph(), presets.preset('2xP100'))
  plan.save(str(path), _graph(),
            registry.create('round_robin').place(step.problem()))


def _write_saved_model(path: pathlib.Path) -> None:
  net = _Net()
  tf.saved_model.save(net, str(path.parent), {'serving_default': net.place})


def _write_policy(path: pathlib.Path) -> None:
  shutil.copytree(shipped_policy.shipped_policy(), path.parent,
                  dirs_exist_ok=True)


def _checkpoint() -> tf.train.Checkpoint:
  return tf.train.Checkpoint(weight=tf.Variable(tf.ones((5, 5))))


def _write_checkpoint(path: pathlib.Path) -> None:
  checkpoints.Checkpoints(path.parent, _checkpoint()).save(1)


def _read_checkpoint(path: pathlib.Path) -> None:
  checkpoints.Checkpoints(path.parent, _checkpoint()).restore(lambda _: None)


def _measurements(path: pathlib.Path) -> measurement_cache.MeasurementCache:
  return measurement_cache.MeasurementCache(path.parent, 'net', b'')


def _write_measurements(path: pathlib.Path) -> None:
  _measurements(path).add(b'key',
                          evaluator.Evaluation(.1, (1, 2), (), simulated=False),
                          True)


def _write_cell(path: pathlib.Path) -> None:
  records.write_failure(path, 'key', 'task', 'metis', 'It cannot.')


def _write_workload(path: pathlib.Path) -> None:
  data = _CAPTURED.read_bytes()
  path.write_bytes(capture._digest(data) + data)


def _write_network(path: pathlib.Path) -> None:
  ones = np.ones((3, 2), np.float32)
  move_network.save(
      path,
      move_network.MoveNetwork(('a', 'b', 'c'), ones[:, 0], ones[:, 0], ones,
                               ones[0], ones[:2], ones[0]))


def _write_log(path: pathlib.Path) -> None:
  logs.save(
      path,
      logs.Log(np.ones((3, 2), np.float32), np.ones(3, np.float32),
               np.zeros(3, np.int32)))


def _silent(line: str) -> None:
  del line


# By the name of the file.
READERS: dict[str, Reader] = {
    'captured.pb':
        Reader(lambda p: shutil.copy(_CAPTURED, p), _read_graph),
    'graph_def.pb':
        Reader(
            lambda p: p.write_bytes(_meta_graph().graph_def.SerializeToString()
                                   ), _read_graph),
    'meta_graph.pbtxt':
        Reader(
            lambda p: p.write_text(text_format.MessageToString(_meta_graph())),
            _read_graph),
    'saved/saved_model.pb':
        Reader(_write_saved_model, _read_graph),
    'model.keras':
        Reader(_write_keras, _read_kind),
    'graph.json':
        Reader(_write_graph_json, _read_graph),
    'costs.pbtxt':
        Reader(lambda p: p.write_bytes(_COSTS), _read_graph),
    'plan.json':
        Reader(_write_plan, _read_plan),
    'cluster.json':
        Reader(lambda p: cluster_file.write(str(p), presets.preset('2xP100')),
               lambda p: cluster_file.read(str(p))),
    'cluster.pbtxt':
        Reader(lambda p: cluster_file.write(str(p), presets.preset('2xP100')),
               lambda p: cluster_file.read(str(p))),
    'calibration.json':
        Reader(lambda p: calibrations.make().save(p), calibration.load),
    'calibrated_cluster.json':
        Reader(
            lambda p: cluster_file.write(
                str(p),
                calibrated.applied(presets.preset('2xH100'), calibrations.make(
                ))), lambda p: cluster_file.read(str(p))),
    'profile.json':
        Reader(lambda p: profiles.make_profile(3).save(p), profile_lib.load),
    'policy/saved_model.pb':
        Reader(_write_policy, _read_policy),
    'policy/policy.json':
        Reader(_write_policy, _read_policy),
    'policy/variables/variables.index':
        Reader(lambda p: _write_policy(p.parent),
               lambda p: _read_policy(p.parent)),
    'config.json':
        Reader(_read_claim, _read_claim, {'nothing'}),
    'checkpoints/ckpt-1.index':
        Reader(_write_checkpoint, _read_checkpoint),
    'checkpoints/ckpt-1.data-00000-of-00001':
        Reader(_write_checkpoint, _read_checkpoint),
    'results.json.gz':
        Reader(
            lambda p: records.Folder(p.parent).write_results({
                'schema': 1, 'simulated': True, 'command': 'gdp_bench',
                'settings': {}, 'versions': {}, 'tasks': []
            }), records.read_results),
    'moves.npz':
        Reader(_write_network, move_network.load),
    'log.npz':
        Reader(_write_log, logs.load),
    # What a cache holds is made anew.
    f'net-{hashlib.sha256(b"").hexdigest()[:16]}.jsonl':
        Reader(_write_measurements, _measurements, _ANYTHING),
    'cell.json':
        Reader(_write_cell, lambda p: records.read(p, 'key'), _ANYTHING),
    'workload.pb':
        Reader(_write_workload, lambda p: capture.cached(p, _silent),
               _ANYTHING),
    'contention.json':
        Reader(lambda p: p.write_text('[0.1, 0.2]'),
               lambda p: profiler._known_shares(p, 2, _silent), _ANYTHING),
}


def read(kind: str, path: pathlib.Path) -> bool:
  """Returns whether a file is read; false if a `GdpError` refuses the file.

  Args:
    kind: Kind of the file, a key of `READERS`.
    path: The file, with the name and folder of `kind`.

  Raises:
    AssertionError: the reader raises another error, or one without a message.
  """
  try:
    with warnings.catch_warnings():
      # A warning counts as an error.
      warnings.simplefilter('error')
      READERS[kind].read(path)
    return True
  except errors.GdpError as error:
    if not errors.one_line(error):
      raise AssertionError('nothing is said') from error
    return False
  except TimeoutError:
    raise
  except Exception as error:
    raise AssertionError(f'{type(error).__name__}: {error}') from error
