"""Runs TensorFlow code of placers on threads of its own.

On a thread of the user's program, the code would inherit the TensorFlow context
of that thread: a v1 graph, a device scope or a gradient tape.
"""

from __future__ import annotations

from concurrent import futures
import contextlib
import threading
from typing import Callable, Iterator, TypeVar

_T = TypeVar('_T')
_NAME = 'gdp_background'


class _Local(threading.local):
  is_placer = False


_local = _Local()


def is_current() -> bool:
  """Whether this thread runs code of a placer.

  The pass skips graphs that such code makes.
  """
  return _local.is_placer


@contextlib.contextmanager
def as_placer_code() -> Iterator[None]:
  """Runs the body as code of a placer: eagerly, and on the host.

  The accelerators' memory belongs to the user's program.
  """
  import tensorflow as tf
  from tensorflow.python.eager import context
  was_placer, _local.is_placer = _local.is_placer, True
  try:
    with context.eager_mode(), tf.device('/CPU:0'):
      yield
  finally:
    _local.is_placer = was_placer


def start(job: Callable[[], _T]) -> futures.Future[_T]:
  """Runs a job on a thread of its own.

  The program does not end before the job: TensorFlow may crash if the program
  ends during a call.

  Args:
    job: Any function; the future has its result or its exception.
  """
  future: futures.Future[_T] = futures.Future()
  threading.Thread(target=_work, args=(future, job), name=_NAME,
                   daemon=False).start()
  return future


def is_busy() -> bool:
  """Whether a job of `start` has not ended."""
  return any(thread.name == _NAME for thread in threading.enumerate())


def _work(future: futures.Future[_T], job: Callable[[], _T]) -> None:
  try:
    with as_placer_code():
      result = job()
  except BaseException as error:
    future.set_exception(error)
  else:
    future.set_result(result)
