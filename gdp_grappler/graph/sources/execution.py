"""Runs TensorFlow's functions in the thread that calls them."""

from __future__ import annotations

import contextlib

from tensorflow.python.eager import context


def synchronously() -> contextlib.AbstractContextManager[None]:
  """Returns a context in which this thread itself runs functions.

  After `tf.config.experimental.set_synchronous_execution(False)`, another
  thread runs functions. It does not know who called them. And after a function
  that was cancelled or failed, it drops all later ops of the program.
  """
  if context.context().is_async():
    return context.execution_mode(context.SYNC)
  return contextlib.nullcontext()
