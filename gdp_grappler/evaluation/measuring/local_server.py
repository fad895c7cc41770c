"""One task of `local_workers`: a TensorFlow server on cores of its own.

TensorFlow's servers obey everybody who connects, so other machines must not
reach this server. It is started with `native.LOOPBACK_PATH` in LD_PRELOAD, and
ends at once if it still listens on an address other than the loopback.

The server of task 0 writes to its standard output when all servers are ready;
see `messages`. A server ends when its standard input ends, so it cannot outlive
its parent.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from gdp_grappler import errors
from gdp_grappler.evaluation.measuring import listening
from gdp_grappler.processes import messages

JOB = 'worker'


def main(request: dict[str, Any]) -> None:
  """Serves until the parent ends it.

  Args:
    request: 'addresses' of all tasks, 'task', 'cores' and 'inter_op_threads' of
      this one.
  """
  # Threads inherit the affinity, and TensorFlow counts the allowed cores.
  os.sched_setaffinity(0, request['cores'])
  messages.end_with_input()
  messages.volunteer_for_oom()
  answers = messages.answers()
  server = _serve(request)
  outside = listening.outside_loopback()
  if outside:
    raise errors.MeasurementError(
        f'A local worker would listen on {", ".join(outside)}, where other '
        'machines can reach it without a password, so it is not used. Is '
        'LD_PRELOAD obeyed here?')
  if request['task'] == 0:
    messages.send(answers, _devices(server.target))
  while True:
    signal.pause()


def _serve(request: dict[str, Any]) -> Any:
  import tensorflow as tf
  config = tf.compat.v1.ConfigProto(
      inter_op_parallelism_threads=request['inter_op_threads'],
      intra_op_parallelism_threads=len(request['cores']))
  config.device_count['CPU'] = 1
  return tf.distribute.Server({JOB: request['addresses']}, JOB, request['task'],
                              config=config)


def _devices(target: str) -> list[str]:
  """Names of all devices; waits until every task has answered."""
  import tensorflow as tf
  with tf.compat.v1.Session(target, graph=tf.Graph()) as session:
    return [d.name for d in session.list_devices()]
