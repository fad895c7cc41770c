"""Makes tasks and cells in the format of the results of gdp_bench."""

from __future__ import annotations


def cell(step_s: float | None = 1., *, placer: str = '', **changes) -> dict:
  """Returns the record of a cell; None means a placement that does not fit."""
  missing = {} if step_s is not None else {'GPU:0': 3 << 30}
  return {
      'placer': placer, 'task': 'net@2xP100',
      'status': 'oom' if step_s is None else 'ok', 'step_time_s': step_s,
      'ordered_step_time_s': None if step_s is None else .9 * step_s,
      'peak_bytes': {'CPU:0': 1 << 20, 'GPU:0': 2 << 30},
      'capacity_bytes': {'CPU:0': 1 << 40,
                         'GPU:0': 16 << 30}, 'missing_bytes': missing,
      'cut_tensors': 7, 'cut_bytes': 3 << 20, 'lower_bound_s': .5,
      'over_bound': None if step_s is None else 2 * step_s, 'limits': {
          'critical_path_s': .1, 'busiest_device_s': .2, 'busiest_channel_s': .3
      }, 'evaluations': 4, 'seconds': 2., 'curve': [], 'won_by': '', **changes
  }


def failure(message: str = 'crashed with SIGSEGV') -> dict:
  """Returns the record of a cell without a result."""
  return {'status': 'failed', 'message': message, 'placer': '', 'task': ''}


def task(name: str = 'net@2xP100', **cells) -> dict:
  """Returns a task with its cells by placer."""
  label, cluster = name.rsplit('@', 1)
  return {
      'name': name, 'file_name': name, 'label': label, 'cluster': cluster,
      'setting': 'batch 64', 'num_ops': 1000, 'paper_ops': 1100,
      'num_groups': 800, 'num_accelerators': 2, 'lower_bound_s': .5,
      'critical_path_s': .5, 'work_s': .4, 'cells': {
          placer: dict(record, placer=placer, task=name)
          for placer, record in cells.items()
      }
  }
