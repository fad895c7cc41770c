"""Settings of sessions that run a graph without changing it."""

from __future__ import annotations

from typing import Any, Iterable


def as_it_is(num_cpus: int | None = None) -> Any:
  """A ConfigProto under which ops run as they were placed.

  Grappler is off, no op is moved to another device, and XLA compiles nothing.

  Args:
    num_cpus: Number of logical CPU devices of this process; None if the session
      connects to a target, which has its own devices.
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
  """Number of logical CPUs that a process needs for some full device names."""
  return 1 + max(
      (int(name.rsplit(':', 1)[1]) for name in device_names if 'CPU' in name),
      default=0)
