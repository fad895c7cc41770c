"""Files of anybody are read, or refused in one line; nothing else happens."""

from __future__ import annotations

import functools
import pathlib
import re
import shutil
from typing import Callable
import warnings

from google.protobuf import text_format
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import plan
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.costs import profile as profile_lib
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import learned
from gdp_grappler.placers import registry
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers import trainer
from gdp_grappler.problems import reading
from gdp_grappler.problems import request
from helpers import damage
from helpers import profiles
from placer_model.benchmark import records
from placer_model.training import checkpoints

_TESTS = pathlib.Path(__file__).parents[1]
_CAPTURED = _TESTS / 'testdata/dense_train_step.pb'
_COSTS = b'''node { name: "a" id: 1 output_info { size: 8 } compute_cost: 3000 }
node { name: "b" id: 2 compute_cost: 4000 input_info { preceding_node: 1 } }
node { name: "c" id: 3 compute_cost: 1 control_input: 1 control_input: 2 }
'''
_SEEDS = 25


class _Net(tf.Module):
  """With a loop, a variable and its update."""

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
  """All that `gdp place` does with a graph before it places."""
  asked = request.Request(str(path))
  step = reading.read(asked, lambda _: presets.preset('2xP100'), lambda _: None)
  _place(step)


def _place(step: step_lib.Step) -> None:
  problem = step.problem()
  placement = registry.create('round_robin').place(problem)
  step.simulator().evaluate(step.graph, placement)


@functools.cache
def _graph() -> op_graph.OpGraph:
  return graph_def_io.read(sources.load(str(_CAPTURED)))


def _read_plan(path: pathlib.Path) -> None:
  plan.load(str(path), _graph())


def _read_policy(path: pathlib.Path) -> None:
  # Without its memory of what was loaded before.
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
  shutil.copytree(trainer.shipped_policy(), path.parent, dirs_exist_ok=True)


# Name of the file -> what writes a good one, what reads it.
_KINDS: dict[str, tuple[Callable[[pathlib.Path], object], Callable[
    [pathlib.Path], object]]] = {
        'captured.pb': (lambda p: shutil.copy(_CAPTURED, p), _read_graph),
        'graph_def.pb': (lambda p: p.write_bytes(
            _meta_graph().graph_def.SerializeToString()), _read_graph),
        'meta_graph.pbtxt':
            (lambda p: p.write_text(text_format.MessageToString(_meta_graph())),
             _read_graph),
        'saved/saved_model.pb': (_write_saved_model, _read_graph),
        'graph.json': (_write_graph_json, _read_graph),
        'costs.pbtxt': (lambda p: p.write_bytes(_COSTS), _read_graph),
        'plan.json': (_write_plan, _read_plan),
        'cluster.json':
            (lambda p: cluster_file.write(str(p), presets.preset('2xP100')),
             lambda p: cluster_file.read(str(p))),
        'cluster.pbtxt':
            (lambda p: cluster_file.write(str(p), presets.preset('2xP100')),
             lambda p: cluster_file.read(str(p))),
        'profile.json':
            (lambda p: profiles.make_profile(3).save(p), profile_lib.load),
        'policy/saved_model.pb': (_write_policy, _read_policy),
        'policy/policy.json': (_write_policy, _read_policy),
        'config.json': (_read_claim, _read_claim),
        'results.json.gz': (lambda p: records.Folder(p.parent).write_results(
            {'schema': 1, 'tasks': []}), records.read_results),
    }


@pytest.fixture(name='good', scope='module')
def _good(tmp_path_factory) -> Callable[[str], pathlib.Path]:
  """A folder with a good file of each kind."""
  folder = tmp_path_factory.mktemp('good')

  def make(name: str) -> pathlib.Path:
    path = folder / name
    if not path.exists():
      path.parent.mkdir(parents=True, exist_ok=True)
      _KINDS[name][0](path)
    return path

  return make


def _try(read: Callable[[pathlib.Path], object], path: pathlib.Path,
         what: str) -> bool:
  """Whether it is read; else it is refused as it should be."""
  try:
    with warnings.catch_warnings():
      # What overflows is allowed to; nobody hears of it.
      warnings.simplefilter('error')
      read(path)
    return True
  except errors.GdpError as error:
    assert errors.one_line(error), what
    return False
  except Exception as error:
    raise AssertionError(f'{what}: {type(error).__name__}: {error}') from error


@pytest.mark.parametrize('name', _KINDS)
def test_damage_is_read_or_refused(good, tmp_path, name):
  source = good(name)
  shutil.copytree(source.parent, tmp_path / 'copy')
  path = tmp_path / 'copy' / source.name
  read, data = _KINDS[name][1], source.read_bytes()
  assert _try(read, path, 'undamaged')
  for seed in range(_SEEDS):
    path.write_bytes(damage.damaged(data, np.random.default_rng(seed)))
    _try(read, path, f'seed {seed}')


@pytest.mark.parametrize('name', _KINDS)
def test_what_is_no_file_of_ours_is_refused(good, tmp_path, name):
  source = good(name)
  shutil.copytree(source.parent, tmp_path / 'copy')
  path = tmp_path / 'copy' / source.name
  for what in damage.obstacles(path):
    if not (name == 'config.json' and what == 'nothing'):
      assert not _try(_KINDS[name][1], path, what), what
