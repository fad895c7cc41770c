"""Times the links to the tasks that this process is connected to, once.

`evaluation/link_timing` needs a session with all devices. A connected program
has these devices only in its eager context. So a `tf.function` sends tensors
back and forth here, before the first step of a `fit` and on the thread that
calls `fit`.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from gdp_grappler.cluster import connected_devices
from gdp_grappler.plugin import current_call
from gdp_grappler.plugin import devices
from gdp_grappler.plugin import link_timing_cache
from gdp_grappler.plugin import task_links


def time_once() -> None:
  """Times the links, unless tasks and addresses are those of the last call."""
  _TIMING.once(devices.names(), _addresses())


def _addresses() -> dict[str, str]:
  """Returns addresses of tasks, but not of this one, whose port varies."""
  from tensorflow.python.eager import context
  server = context.context().get_server_def()
  found = {} if server is None else {
      f'/job:{job.name}/replica:0/task:{number}': address
      for job in server.cluster.job for number, address in job.tasks.items()
  }
  found.pop(connected_devices.own_task(), None)
  return found


def _ping_pong(source: str, target: str, size: int,
               trips: int) -> Callable[[], None]:
  """See `link_timing_cache.PingPong`."""
  import tensorflow as tf

  @functools.partial(tf.function, autograph=False)
  def play(ball: Any) -> Any:
    for _ in range(trips):
      for end in (target, source):
        with tf.device(f'{end}/device:CPU:0'):
          # An op that Grappler neither removes nor joins with others.
          ball = tf.maximum(ball, 1.)
    with tf.device(f'{source}/device:CPU:0'):
      return tf.reduce_max(ball)

  with tf.device(f'{source}/device:CPU:0'):
    ball = tf.ones([size // 4])

  def once() -> None:
    # In the scope of another task, that task would run the whole function.
    with tf.device(None):
      current_call.run(current_call.LeftAlone('timing of the network'),
                       lambda: play(ball).numpy())

  once()
  return once


_TIMING = link_timing_cache.LinkTiming(task_links.KNOWN, _ping_pong)
