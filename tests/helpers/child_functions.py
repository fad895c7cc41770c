"""Functions for processes of their own; tests name them."""

from __future__ import annotations

import os
import signal
import sys

from gdp_grappler import spelling
from gdp_grappler.processes import messages


def echo(*values):
  """Its arguments, whatever is printed meanwhile."""
  os.write(1, b'noise of native code\n')
  print('noise')
  return values


def environment():
  """The variables and the import path of the process."""
  return dict(os.environ), list(sys.path)


def draw():
  """A number from a module that may be shadowed; reads its input, if any."""
  import random
  return random.randrange(1), sys.stdin.read()


def refuse(*arguments):
  """Raises an error of two lines."""
  del arguments
  raise ValueError('two\nlines.')


def die():
  """Ends the process without a word to its parent."""
  print('last words', file=sys.stderr)
  os._exit(3)


def hang():
  """Does not return."""
  signal.pause()


def send_back(suffix: str):
  """Answers messages with themselves and a suffix until its parent is gone."""
  answers = messages.answers()
  while True:
    try:
      messages.send(answers, messages.receive(sys.stdin.buffer.read) + suffix)
    except EOFError:
      return


def with_keras_2(folder, features):
  """`policy_check.logits` in a process that loads Keras 2 as well."""
  import tf_keras  # noqa: F401

  from gdp_grappler.placers.policy import policy_check
  return policy_check.logits(folder, features)


def has_keras():
  """Prints whether TensorFlow brought Keras along."""
  import tensorflow as tf
  assert float(tf.constant(2.) + 1.) == 3.
  print(sys.modules.get('keras') is not None)


def has_tf_keras():
  """Prints whether `tf.keras` is Keras 2, if it is there at all."""
  import tensorflow as tf
  assert float(tf.constant(2.) + 1.) == 3.
  print(os.environ.get('TF_USE_LEGACY_KERAS') == '1')


def say_argument(name):
  """Prints how messages spell an argument here."""
  print(spelling.argument(name))


def doctor_of_gpus(cluster, split, memory_bytes):
  """What the doctor says of a process that has these GPUs, which are emulated.

  Args:
    cluster: Name of a preset.
    split: Option of the program.
    memory_bytes: Of each, as a driver would tell; None if there is none.

  Returns:
    (state, detail) by question.
  """
  from gdp_grappler.cluster import presets
  from gdp_grappler.evaluation.emulation import machine
  from gdp_grappler.evaluation.emulation import native_gpus
  from gdp_grappler.plugin import doctor
  from gdp_grappler.plugin import probe
  from gdp_grappler.plugin import splitting
  _ = native_gpus.NativeGpus(machine.Machine(presets.preset(cluster)))
  if memory_bytes is not None:
    splitting._free_bytes = lambda names: dict.fromkeys(names, memory_bytes)
  return {
      finding.what: (finding.state, finding.detail)
      for finding in doctor._read_report(probe.report(split), [])
  }
