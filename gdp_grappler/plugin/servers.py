"""TensorFlow servers, which place the graphs of v1 sessions on grpc://.

The server that a session names by 'grpc://host:port' optimizes the session's
graph, according to the session's configuration. The configuration contains the
option and the name of the pass, but not the code of the pass. So the process of
a server loads the library of the pass when the server is made.
"""

from __future__ import annotations

from typing import Any, Callable
import weakref

from tensorflow.python.training import server_lib

from gdp_grappler import method_wrapping

# Servers of this process, in the order of their creation. A server stops when
# nothing refers to it.
_running: list[weakref.ref[Any]] = []


def install(connect: Callable[[], Any]) -> None:
  """Wraps the constructor of all servers, once per process.

  Args:
    connect: Loads the pass.
  """

  def init(stock: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    connect()  # Before a client can send a request.
    stock(self, *args, **kwargs)
    _running.append(weakref.ref(self, _running.remove))

  method_wrapping.wrap(server_lib.Server, '__init__', init)


def target() -> str:
  """Returns 'grpc://host:port' of this process's server; '' without one."""
  server = _latest()
  return '' if server is None else server.target


def addresses() -> dict[str, str]:
  """Returns the addresses of the server's cluster by task.

  A task is a name such as '/job:worker/replica:0/task:1'. Without a server the
  result is empty.
  """
  server = _latest()
  if server is None:
    return {}
  spec = server_lib.ClusterSpec(server.server_def.cluster)
  return {
      f'/job:{job}/replica:0/task:{number}': spec.task_address(job, number)
      for job in spec.jobs for number in spec.task_indices(job)
  }


def _latest() -> Any:
  """Returns the newest server of this process; None without one."""
  return _running[-1]() if _running else None
