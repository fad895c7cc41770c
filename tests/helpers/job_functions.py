"""Functions of jobs, which tests pass to workers by name."""

from __future__ import annotations

import os
import pathlib
import signal
import tempfile
import time

import numpy as np

from gdp_grappler import errors
from gdp_grappler.processes import job_worker


def doubling(setup):
  """Returns a function that doubles; the worker leaves a file behind."""
  job_worker.alone()
  tempfile.mkstemp(prefix='left_behind')
  return lambda job: (setup, 2 * job.arguments[0])


def slow(setup):
  """Returns a function that makes a long array of a job in `setup` seconds."""
  job_worker.alone()

  def answer(job):
    time.sleep(setup)
    return np.random.default_rng(job.arguments).random(50_000)

  return answer


def misbehaving(setup):
  """Returns a function that behaves as the name of the job says."""
  del setup
  return lambda job: _DOING[job.name]()


def unmade(setup):
  """Raises an error, so that no worker can be made."""
  raise errors.GdpError(f'{setup} is missing.')


def seen(setup):
  """Returns a function that returns variables, niceness, temporary folder."""
  del setup
  job_worker.alone()
  return lambda job: ([os.environ.get(name) for name in job.arguments],
                      os.nice(0), str(pathlib.Path(tempfile.gettempdir())))


def _raise():
  raise ValueError('two\nlines')


_DOING = {
    'well': lambda: 'done', 'raising': _raise, 'dying': lambda: os._exit(3),
    'killed': lambda: os.kill(os.getpid(), signal.SIGKILL),
    'hanging': signal.pause
}
