"""Checks an installation, and says what to do about what is wrong."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from typing import Iterator

from gdp_grappler import errors
from gdp_grappler import native

GOOD, NOTE, BAD = 'ok', 'note', 'BAD'
_LOADER = 'libgdp_loader.so'
_REINSTALL = 'Run: pip install --force-reinstall --no-deps gdp-grappler'
_TIMEOUT_S = 120

# Runs as a user's program does: a bare TensorFlow, two CPU devices, and a
# function whose ops must really end up on both.
_PROBE = '''
import json, sys
import tensorflow as tf
from tensorflow.python.eager import context
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices('CPU')[0],
    [tf.config.LogicalDeviceConfiguration()] * 2)
report = {'logical': [d.name for d in tf.config.list_logical_devices()],
          'gpus': [d.name for d in tf.config.list_physical_devices('GPU')],
          'hook': hasattr(context.Context, '_gdp_hook')}
if report['hook']:
  tf.config.optimizer.set_experimental_options({'gdp_placement': {
      'placer': 'random', 'keep_best': False, 'min_ops': 4}})
  @tf.function
  def work(x):
    for _ in range(12):
      x = tf.tanh(tf.matmul(x, x))
    return x
  context.enable_graph_collection()
  work(tf.ones((8, 8)))
  tf.identity(1.)  # Graphs are handed over when a later op succeeds.
  graphs = context.export_run_metadata().function_graphs
  report['used'] = sorted({n.device for g in graphs for p in g.partition_graphs
                           for n in p.node if 'MatMul' in n.op})
print('REPORT' + json.dumps(report))
'''


@dataclasses.dataclass(frozen=True)
class Finding:
  """The answer to one question.

  Attributes:
    state: GOOD, NOTE (worth knowing) or BAD.
    what: The question.
    detail: The answer.
    remedy: What to do; '' if nothing.
  """

  state: str
  what: str
  detail: str
  remedy: str = ''


def examine(policy: str | None = None) -> list[Finding]:
  """Asks everything; a failing check never stops the others.

  Args:
    policy: A policy folder to check; the default one if None.
  """
  findings = []
  for check in (_tensorflow, _libraries, _loaders, _other_plugins, _environment,
                _in_a_fresh_process, _xla):
    findings.extend(check())
  return findings + list(_policy(policy))


def _tensorflow() -> Iterator[Finding]:
  import tensorflow as tf
  try:
    built = native.built_for_tensorflow()
  except errors.PluginError as error:
    yield Finding(BAD, 'TensorFlow', f'{tf.__version__}; {error}', _REINSTALL)
    return
  same = built.split('.')[:2] == tf.__version__.split('.')[:2]
  yield Finding(GOOD if same else BAD, 'TensorFlow',
                f'{tf.__version__}, libraries built for {built}',
                '' if same else _REINSTALL)


def _libraries() -> Iterator[Finding]:
  for what, load in (('simulator', native.load_simulator),
                     ('Grappler pass', native.load_grappler)):
    try:
      load()
      yield Finding(GOOD, what, 'library loads')
    except errors.PluginError as error:
      yield Finding(BAD, what, str(error), _REINSTALL)


def _loaders() -> Iterator[Finding]:
  """TensorFlow loads what lies in any tensorflow-plugins folder of sys.path."""
  found = sorted(
      {str(path.resolve()) for path in _plugin_files() if path.name == _LOADER}
      | set(_named_by_environment()))
  if len(found) == 1:
    yield Finding(GOOD, 'loader', found[0])
  elif not found:
    yield Finding(BAD, 'loader', f'no tensorflow-plugins/{_LOADER} on sys.path',
                  _REINSTALL)
  else:
    yield Finding(BAD, 'loader', 'found more than once: ' + ', '.join(found),
                  'Keep one: uninstall gdp-grappler in the other places.')


def _other_plugins() -> Iterator[Finding]:
  others = sorted({
      path.name for path in _plugin_files()
      if path.suffix == '.so' and path.name != _LOADER
  })
  yield Finding(NOTE if others else GOOD, 'other TensorFlow plugins',
                ', '.join(others) or 'none')


def _plugin_files() -> Iterator[pathlib.Path]:
  for entry in sys.path:
    folder = pathlib.Path(entry or '.') / 'tensorflow-plugins'
    if folder.is_dir():
      yield from folder.iterdir()


def _named_by_environment() -> list[str]:
  path = os.environ.get('TF_PLUGGABLE_DEVICE_LIBRARY_PATH', '')
  if path.endswith(_LOADER) and os.path.exists(path):
    return [str(pathlib.Path(path).resolve())]
  return []


def _environment() -> Iterator[Finding]:
  for name in ('GDP_PLACEMENT', 'GDP_POLICY', 'GDP_CAPTURE_DIR'):
    if os.environ.get(name):
      yield Finding(NOTE, name, os.environ[name])


def _in_a_fresh_process() -> Iterator[Finding]:
  environment = {
      key: value for key, value in os.environ.items()
      if key not in ('GDP_DISABLE', 'GDP_PLACEMENT', 'GDP_CAPTURE_DIR',
                     'TF_USE_LEGACY_KERAS')
  }
  try:
    done = subprocess.run([sys.executable, '-c', _PROBE], env=environment,
                          capture_output=True, text=True, timeout=_TIMEOUT_S,
                          check=False)
  except subprocess.TimeoutExpired:
    yield Finding(BAD, 'hook', f'no answer within {_TIMEOUT_S} s',
                  'Set GDP_DISABLE=1 to work without the plugin.')
    return
  lines = [l for l in done.stdout.splitlines() if l.startswith('REPORT')]
  if not lines:
    last = (done.stderr.strip().splitlines() or ['no output'])[-1]
    yield Finding(BAD, 'hook', f'a program with the plugin failed: {last}',
                  'Set GDP_DISABLE=1 to work without the plugin.')
    return
  report = json.loads(lines[0].removeprefix('REPORT'))
  yield from _read_report(report, done.stderr)


def _read_report(report, errors_printed) -> Iterator[Finding]:
  said = [l for l in errors_printed.splitlines() if l.startswith('[gdp]')]
  yield Finding(
      GOOD if report['hook'] else BAD, 'hook',
      'active after a bare `import tensorflow`'
      if report['hook'] else 'not active' + (f': {said[-1]}' if said else ''),
      '' if report['hook'] else _REINSTALL)
  if report['hook']:
    works = len(report['used']) > 1
    yield Finding(
        GOOD if works else BAD, 'placement',
        f'a function really ran on {len(report["used"])} of 2 logical CPUs' +
        (f': {said[-1]}' if said and not works else ''),
        '' if works else _REINSTALL)
  gpus = report['gpus']
  yield Finding(
      GOOD if len(gpus) > 1 else NOTE, 'devices', ', '.join(gpus) or
      'one CPU, no GPU',
      '' if len(gpus) > 1 else 'With fewer than two physical devices nothing '
      'can get faster; graphs are then left as they are.')


def _xla() -> Iterator[Finding]:
  flags = os.environ.get('TF_XLA_FLAGS', '')
  if '--tf_xla_auto_jit' in flags:
    yield Finding(
        NOTE, 'XLA', f'TF_XLA_FLAGS={flags}',
        'Compiled clusters cannot be split: unset TF_XLA_FLAGS to '
        'have their ops placed.')
  else:
    yield Finding(
        GOOD, 'XLA', 'no auto-clustering; models compiled with '
        'jit_compile=True are one op, use jit_compile=False')


def _policy(policy) -> Iterator[Finding]:
  from gdp_grappler.placers import learned
  from gdp_grappler.placers import trainer
  try:
    learned.LearnedPlacer(policy)
    folder = policy or os.environ.get('GDP_POLICY') or trainer.shipped_policy()
    yield Finding(GOOD, 'policy', f'{folder} loads')
  except errors.PolicyMismatchError as error:
    yield Finding(BAD, 'policy', str(error))
