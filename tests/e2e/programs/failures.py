"""Placers that misbehave. The graph has to run unplaced after each failure."""

import os
import signal
import threading

import common
import numpy as np
import tensorflow as tf

common.make_devices(2)

from gdp_grappler.plugin import host  # noqa: E402
from gdp_grappler.plugin import optimizer  # noqa: E402
from gdp_grappler.plugin import outcome as outcome_lib  # noqa: E402

X = tf.constant(np.arange(64, dtype=np.float32).reshape(8, 8) / 64)
EXPECTED = float(sum(np.sin(X.numpy() + i).sum() for i in range(20)))


def new_function():
  """Returns a new function, so that a trace shows it to the pass."""
  unique = tf.constant(np.random.rand())

  @tf.function
  def function(x):
    total = unique * 0.
    for i in range(20):
      total += tf.reduce_sum(tf.sin(x + i))
    return total

  return function


def run(optimize, **option):
  """Whether the result of a function is right."""
  optimizer.optimize = optimize
  common.set_option({**common.RANDOM, **option})
  value = float(new_function()(X))
  return bool(abs(value - EXPECTED) < 1e-3)


def outcome(devices):
  return outcome_lib.Outcome(devices, '')


def raises(source, settings, **unused_options):
  raise RuntimeError('broken placer\nwith two lines')


def exits(source, settings, **unused_options):
  raise SystemExit(3)


def short(source, settings, **unused_options):
  return outcome(source.devices[:1])


def unknown(source, settings, **unused_options):
  return outcome(('/device:GPU:7',) * len(source.graph_def.node))


def not_text(source, settings, **unused_options):
  return outcome((1,) * len(source.graph_def.node))


def empty(source, settings, **unused_options):
  return outcome(())


def nothing(source, settings, **unused_options):
  return None


def reenters(source, settings, **unused_options):
  """Runs functions within the placer, which reach the pass as well."""
  CALLS.append(threading.current_thread().name)
  value = float(new_function()(X))
  assert abs(value - EXPECTED) < 1e-3
  return outcome((source.devices[1],) * len(source.graph_def.node))


def interrupted(number, handler, seed):
  """Returns the exception that a signal raises while the placer works."""
  received = threading.Event()

  def interrupt(source, settings, **unused_options):
    os.kill(os.getpid(), number)
    received.wait()
    return outcome(None)

  before = signal.signal(number, handler)
  optimizer.optimize = interrupt
  common.set_option({**common.RANDOM, 'seed': seed})
  try:
    new_function()(X)
    # The exception is raised after the pass, so the program waits.
    threading.Event().wait(10)
  except BaseException as error:
    return repr(error)
  finally:
    received.set()
    signal.signal(number, before)
  return ''


def times_out(number, frame):
  raise TimeoutError('mine')


def ends(number, frame):
  raise SystemExit(7)


def interruptions():
  """Returns the exceptions after Ctrl-C, a timeout and a call of sys.exit."""
  # A process in the background ignores Ctrl-C.
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  return [
      interrupted(signal.SIGINT, signal.default_int_handler, 1),
      interrupted(signal.SIGALRM, times_out, 3),
      interrupted(signal.SIGTERM, ends, 4)
  ]


HANG = threading.Event()
CALLS, HUNG = [], []


def hangs(source, settings, **unused_options):
  HUNG.append(threading.current_thread().name)
  HANG.wait()
  return outcome(None)


def main():
  right = {
      f.__name__: run(f)
      for f in (raises, raises, exits, short, unknown, not_text, empty, nothing)
  }
  right['reenters'] = run(reenters)
  results = {'calls': list(CALLS), 'interrupted': interruptions()}
  right['hangs'] = run(hangs, time_budget_s=1)
  # If the pass waited for this budget, it would not return during the test.
  right['still_busy'] = run(hangs, time_budget_s=86400)
  results['hung'] = len(HUNG)
  HANG.set()
  host._thread._late.result()
  right['from_cache'] = run(raises)
  right['recovers'] = run(reenters, seed=2)
  common.finish(right=right, calls_after=len(CALLS), **results)


if __name__ == '__main__':
  main()
