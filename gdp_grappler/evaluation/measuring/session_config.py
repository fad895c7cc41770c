"""The settings of sessions that run a graph as it is."""

from __future__ import annotations

from typing import Any, Iterable


def as_it_is(num_cpus: int | None = None) -> Any:
  """A ConfigProto under which what runs is what was placed.

  Grappler neither folds nor merges, no op is moved to another device, and XLA
  compiles nothing.

  Args:
    num_cpus: Logical CPU devices of this process; None where a target has its
      own.
  """
  from tensorflow.core.protobuf import config_pb2
  config = config_pb2.ConfigProto(allow_soft_placement=False)
  if num_cpus is not None:
    config.device_count['CPU'] = num_cpus
  config.gpu_options.allow_growth = True
  options = config.graph_options
  options.rewrite_options.disable_meta_optimizer = True
  options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
  options.optimizer_options.global_jit_level = config_pb2.OptimizerOptions.OFF
  return config


def num_cpus(device_names: Iterable[str]) -> int:
  """How many logical CPUs a process needs for some full device names."""
  return 1 + max(
      (int(name.rsplit(':', 1)[1]) for name in device_names if 'CPU' in name),
      default=0)
