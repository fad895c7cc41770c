"""Times the links between the tasks of a cluster that this process serves.

A v1 session names a server, and this server places the graphs of the session.
Before the server places the first of these graphs, it runs a ping-pong in
sessions of its own.
"""

from __future__ import annotations

from typing import Callable, Sequence

from gdp_grappler import deadlines
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.measuring import session_config
from gdp_grappler.plugin import link_timing_cache
from gdp_grappler.plugin import servers
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import task_links

# Time limit for requests to a server. A lost task never answers.
_TIMEOUT_MS = 30_000


def time_once(names: Sequence[str], settings: settings_lib.Settings) -> None:
  """Times the links for `task_links.KNOWN`; does nothing without a server.

  A program that is connected to the server, for example by
  `connect_to_cluster`, is no task of the server's cluster, so its links are not
  timed.

  Args:
    names: Full names of the devices of a graph.
    settings: The user's option, which may describe another cluster.
  """
  addresses = servers.addresses()
  known = [name for name in names if cluster_lib.task(name) in addresses]
  if known and task_links.is_own(settings.cluster):
    with deadlines.LOADING.running():
      _TIMING.once(known, addresses)


def _ping_pong(source: str, target: str, size: int,
               trips: int) -> Callable[[], None]:
  """Returns a ping-pong; see `link_timing_cache.PingPong`."""
  import tensorflow as tf
  config = session_config.as_it_is()
  config.operation_timeout_in_ms = _TIMEOUT_MS
  config.isolate_session_state = True
  with tf.Graph().as_default() as graph:
    with tf.device(f'{source}/device:CPU:0'):
      ball = tf.fill([size // 4], 1.)
    for _ in range(trips):
      for end in (target, source):
        with tf.device(f'{end}/device:CPU:0'):
          ball = tf.identity(ball)
    session = tf.compat.v1.Session(servers.target(), graph, config)

  def once() -> None:
    session.run(ball.op)

  once()
  return once


_TIMING = link_timing_cache.LinkTiming(task_links.KNOWN, _ping_pong)
