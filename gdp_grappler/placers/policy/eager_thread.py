"""Work of placers on threads of its own, apart from the program's TensorFlow.

On a thread of the program TensorFlow would inherit whatever that thread is in
the middle of: a v1 graph, a device scope, a tape.
"""

from __future__ import annotations

from concurrent import futures
import contextlib
import threading
from typing import Callable, Iterator, TypeVar

_T = TypeVar('_T')


class _Local(threading.local):
  apart = False


_local = _Local()


def is_current() -> bool:
  """Whether the caller works for a placer; its own graphs are left alone."""
  return _local.apart


@contextlib.contextmanager
def apart() -> Iterator[None]:
  """What runs meanwhile on this thread is a placer's, eager and on the host.

  The host has memory to spare, the accelerators belong to the user.
  """
  import tensorflow as tf
  from tensorflow.python.eager import context
  _local.apart = True
  try:
    with context.eager_mode(), tf.device('/CPU:0'):
      yield
  finally:
    _local.apart = False


def start(job: Callable[[], _T]) -> futures.Future[_T]:
  """Runs a job on a thread of its own.

  The program ends after the job: TensorFlow does not bear to be left in the
  middle of a call.
  """
  future: futures.Future[_T] = futures.Future()
  threading.Thread(target=_work, args=(future, job), name='gdp_background',
                   daemon=False).start()
  return future


def _work(future: futures.Future[_T], job: Callable[[], _T]) -> None:
  try:
    with apart():
      result = job()
  except BaseException as error:
    future.set_exception(error)
  else:
    future.set_result(result)
