"""gdp_train with small presets, which train few steps of a small network.

The console script measures few steps, and does not wait long for a target.
"""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import dataclasses
import pathlib
from typing import Any

import pytest

from gdp_grappler import quiet
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.measuring import measure_config
from gdp_grappler.placers.policy import policy_config
from placer_model import config as config_lib
from placer_model.bin import gdp_train
from placer_model.training import task as task_lib
from placer_model.training import train_config
from placer_model.training.moves import move_config

with quiet.stderr_held():  # As the program imports it.
  import tensorflow as tf

  from placer_model.training.moves import move_run

_MOST = dict(warm_search_trials=256, warm_start_steps=20, distill_steps=40,
             search_trials=32)
_FEW_MOVES = dict(rollouts=8, draws=16, episode_prices=8, skill_drafts=2,
                  search_trials=64)
_DRAFTS = policy_config.PolicyConfig(maps=1, cuts=0, schedules=1)
_CONNECT_S = 2.


@dataclasses.dataclass(frozen=True)
class _FewSteps(measure_config.MeasureConfig):
  steps: int = 3
  warmup: int = 1
  budget_s: float = .2


def write_graph(path: pathlib.Path, width: int = 3) -> str:
  """Writes parallel chains of matrix products that meet at the end."""
  with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, [64, 256], name='x')
    branches = []
    for i in range(width):
      branch = x
      for j in range(3):
        weights = tf.ones([256, 256], name=f'w{i}_{j}')
        branch = tf.matmul(branch, weights, name=f'product{i}_{j}')
      branches.append(branch)
    tf.add_n(branches, name='sum')
  path.write_bytes(graph.as_graph_def().SerializeToString())
  return str(path)


def without(record: Any, *fields: str) -> Any:
  """Returns a record of a run without some fields, at any depth."""
  if isinstance(record, dict):
    return {
        key: without(value, *fields) for key, value in record.items()
        if key not in fields
    }
  if isinstance(record, list):
    return [without(value, *fields) for value in record]
  return record


def patch(monkeypatch: pytest.MonkeyPatch) -> None:
  """Makes the presets small."""
  levers, network = train_config.preset, config_lib.preset

  def few(name: str) -> train_config.TrainConfig:
    config = levers(name)
    return dataclasses.replace(
        config, **{
            field: min(getattr(config, field), value)
            for field, value in _MOST.items()
        })

  numbers = move_run.config_of

  def few_moves(options: task_lib.TrainOptions) -> move_config.MoveConfig:
    config = numbers(options)
    return dataclasses.replace(
        config, drafts=_DRAFTS, **{
            field: min(getattr(config, field), value)
            for field, value in _FEW_MOVES.items()
        })

  monkeypatch.setattr(move_run, 'config_of', few_moves)
  monkeypatch.setattr(train_config, 'preset', few)
  monkeypatch.setattr(
      config_lib, 'preset', lambda name: network(name).replace(
          graph_layers=1, transformer_layers=0, superposition=False))


def run() -> None:
  """Runs the console script, in a process of its own."""
  patch(pytest.MonkeyPatch())
  measure_config.MeasureConfig = _FewSteps  # type: ignore[misc]
  remote_devices.remote_cluster.__defaults__ = (_CONNECT_S,)
  gdp_train.run()
