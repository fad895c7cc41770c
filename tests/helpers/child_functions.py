"""Functions that tests run by name in child processes."""

from __future__ import annotations

import os
import signal
import sys

from gdp_grappler import spelling
from gdp_grappler.processes import messages


def echo(*values):
  """Prints something, and returns its arguments."""
  os.write(1, b'noise of native code\n')
  print('noise')
  return values


def environment():
  """Returns the variables and the import path of the process."""
  return dict(os.environ), list(sys.path)


def draw():
  """Returns a number from a module that a file may shadow; reads its input."""
  import random
  return random.randrange(1), sys.stdin.read()


def refuse(*arguments):
  """Raises an error of two lines."""
  del arguments
  raise ValueError('two\nlines.')


def die():
  """Ends the process without an answer to its parent."""
  print('last words', file=sys.stderr)
  os._exit(3)


def hang():
  """Never returns."""
  signal.pause()


def send_back(suffix: str):
  """Answers each message by the message and a suffix, until its parent ends."""
  answers = messages.answers()
  while True:
    try:
      messages.send(answers, messages.receive(sys.stdin.buffer.read) + suffix)
    except EOFError:
      return


def with_keras_2(folder, features):
  """Returns `policy_check.logits` in a process that also loads Keras 2."""
  import tf_keras  # noqa: F401

  from gdp_grappler.placers.policy import policy_check
  return policy_check.logits(folder, features)


def kinds_of_keras():
  """Prints whether TensorFlow imported Keras, and whether it wants Keras 2."""
  import tensorflow as tf
  assert float(tf.constant(2.) + 1.) == 3.
  print(
      sys.modules.get('keras') is not None,
      os.environ.get('TF_USE_LEGACY_KERAS') == '1')


def say_argument(name):
  """Prints how messages of this process spell an argument."""
  print(spelling.argument(name))


def doctor_of_gpus(cluster, split, memory_bytes):
  """Returns the doctor's findings in a process with emulated GPUs.

  Args:
    cluster: Name of a preset.
    split: The option `split` of the program.
    memory_bytes: Memory of each GPU that a driver reports; None for no driver.

  Returns:
    (state, detail) by question.
  """
  from gdp_grappler import environment
  from gdp_grappler.cluster import presets
  from gdp_grappler.evaluation.emulation import machine
  from gdp_grappler.evaluation.emulation import native_gpus
  from gdp_grappler.plugin import doctor
  from gdp_grappler.plugin import probe
  from gdp_grappler.plugin import splitting
  _ = native_gpus.NativeGpus(machine.Machine(presets.preset(cluster)))
  if memory_bytes is not None:
    splitting._free_bytes = lambda names: dict.fromkeys(names, memory_bytes)
  environment._USERS_DISABLE = ''  # Children have GDP_DISABLE, users have not.
  return {
      finding.what: (finding.state, finding.detail)
      for finding in doctor._read_report(probe.report(split), [])
  }
