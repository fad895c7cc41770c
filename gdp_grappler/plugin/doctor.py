"""Checks an installation, and tells the user how to repair it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import pathlib
import sys
from typing import Any, Callable, Iterator, Sequence

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import native
from gdp_grappler.cluster import nvml
from gdp_grappler.placers.plans import planned
from gdp_grappler.plugin import devices
from gdp_grappler.plugin import settings
from gdp_grappler.plugin import splitting
from gdp_grappler.plugin import xla
from gdp_grappler.processes import worker_process
from gdp_grappler.reports import units

GOOD, NOTE, BAD = 'ok', 'note', 'BAD'
_LOADER = 'libgdp_loader.so'
_REINSTALL = 'Run: pip install --force-reinstall --no-deps gdp-grappler'
_NO_CUDA = (
    'Run: pip install "tensorflow[and-cuda]". If that changes nothing, run: '
    'python -c "import tensorflow as tf; tf.config.list_logical_devices()". '
    'TensorFlow then prints what it lacks.')
_TIMEOUT_S = 120.  # Time limit of the test in a new process, in seconds.
_PROBE = 'gdp_grappler.plugin.probe:main'
_OF_XLA = {
    xla.Handling.KEPT: 'XLA stays',
    xla.Handling.COMPARED: 'a placed step has to beat the step with XLA',
    xla.Handling.HELD_BACK: 'no XLA'
}
_CALIBRATE = 'Run: gdp calibrate --device=GPU:N, with the number of this card'
_NO_GPU = (
    'With fewer than two physical devices nothing can get faster; graphs '
    'are then left as they are.')
_ONE_GPU = ('With one GPU little can get faster: float arithmetic stays on it '
            "unless 'may_round' is set, or 'split' cuts it into logical GPUs.")


@dataclasses.dataclass(frozen=True)
class Finding:
  """The result of one check.

  Attributes:
    state: GOOD, NOTE (worth knowing) or BAD.
    what: What was checked.
    detail: What was found.
    remedy: What the user can do; '' for nothing.
  """

  state: str
  what: str
  detail: str
  remedy: str = ''


def examine(policy: str | None = None) -> Iterator[Finding]:
  """Yields the findings of all checks. A failed check stops no other check.

  Args:
    policy: Folder of a policy to check. None means the default policy.
  """
  checks: dict[str, Callable[[], Iterator[Finding]]] = {
      'TensorFlow': _tensorflow,
      'libraries': _libraries,
      'loader': _loaders,
      'other TensorFlow plugins': _other_plugins,
      'environment': _environment,
      'hook': _in_a_fresh_process,
      'calibration': _calibration,
      'XLA': _xla,
      'policy': functools.partial(_policy, policy),
  }
  for what, check in checks.items():
    yield from _guarded(what, check)


def _guarded(what: str,
             check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
  """Yields the findings of a check. An error becomes the last finding."""
  try:
    yield from check()
  except Exception as error:
    # A damaged installation or another package may raise any error.
    said = f'{type(error).__name__}: {errors.one_line(error)}'
    yield Finding(BAD, what, f'the check failed: {said}',
                  _NO_CUDA if 'cuda' in said.lower() else _REINSTALL)


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
  for what, library in (('simulator', native.Library.SIMULATOR),
                        ('Grappler pass', native.Library.GRAPPLER)):
    try:
      native.load(library)
      yield Finding(GOOD, what, 'library loads')
    except errors.PluginError as error:
      yield Finding(BAD, what, str(error), _REINSTALL)


def _loaders() -> Iterator[Finding]:
  """Finds the loaders that TensorFlow loads, in all folders of sys.path."""
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
    # A folder that cannot be searched or listed has no plugin for us.
    with contextlib.suppress(OSError):
      yield from folder.iterdir()


def _named_by_environment() -> list[str]:
  path = os.environ.get('TF_PLUGGABLE_DEVICE_LIBRARY_PATH', '')
  if path.endswith(_LOADER) and os.path.exists(path):
    return [str(pathlib.Path(path).resolve())]
  return []


def _environment() -> Iterator[Finding]:
  for name in (environment.PLACEMENT, environment.SPLIT, environment.POLICY,
               environment.CAPTURE_DIR):
    if os.environ.get(name):
      yield Finding(NOTE, name, os.environ[name])


def _in_a_fresh_process() -> Iterator[Finding]:
  split = None
  try:
    split = _split()
  except ValueError as error:
    yield Finding(BAD, 'split', str(error), f'Correct {environment.SPLIT}.')
  with_plugin = {environment.DISABLE: '0'}
  try:
    worker = worker_process.WorkerProcess(_PROBE, [split], with_plugin)
  except errors.GdpError as error:
    yield Finding(BAD, 'hook', str(error))
    return
  with contextlib.closing(worker) as process:
    try:
      report = process.receive(_TIMEOUT_S)
    except worker_process.Died as error:
      yield Finding(BAD, 'hook', f'a program with the plugin failed: {error}',
                    f'Set {environment.DISABLE}=1 to work without the plugin.')
      return
    said = [line for line in process.said() if line.startswith('[gdp]')]
  yield from _read_report(report, said)


def _split() -> int | str | None:
  """Returns the parts of each card, if the program itself sets nothing.

  Raises:
    ValueError: GDP_SPLIT is wrong.
  """
  found = splitting.in_environment()
  if found is not None:
    return found
  try:
    on = settings.from_option(settings.from_text(environment.placement()))
  except ValueError:
    return None  # `_next_fit` reports this error.
  return None if on is None else on.split


def _read_report(report: dict[str, Any], said: list[str]) -> Iterator[Finding]:
  yield Finding(
      GOOD if report['hook'] else BAD, 'hook',
      'active after a bare `import tensorflow`'
      if report['hook'] else 'not active' + (f': {said[-1]}' if said else ''),
      '' if report['hook'] else _REINSTALL)
  if report['hook']:
    works = len(report['used']) > 1
    yield Finding(
        GOOD if works else BAD, 'placement',
        f'a function ran on {len(report["used"])} of '
        f'{len(report["logical"])} logical CPUs' +
        (f': {said[-1]}' if said and not works else ''),
        '' if works else _REINSTALL)
  line, parts = report.get('cut', ('', 1))
  gpus = report['gpus']
  yield _devices(gpus, parts)
  if line:
    yield Finding(GOOD if parts > 1 else NOTE, 'split',
                  line.removeprefix('split: '))
  yield _next_fit(len(gpus), parts)


def _devices(gpus: Sequence[str], parts: int) -> Finding:
  """Returns whether there are enough devices.

  Args:
    gpus: Names of the GPUs that TensorFlow sees.
    parts: Logical GPUs of each GPU.
  """
  if gpus:
    many = len(gpus) * parts > 1
    return Finding(GOOD if many else NOTE, 'devices', ', '.join(gpus),
                   '' if many else _ONE_GPU)
  cards = nvml.installed().cards()
  unseen = [cards[index].title for index in nvml.visible(cards)]
  if unseen:
    return Finding(
        BAD, 'devices', f'TensorFlow sees no GPU, but the driver has '
        f'{", ".join(unseen)}', _NO_CUDA)
  return Finding(NOTE, 'devices', 'one CPU, no GPU', _NO_GPU)


def _next_fit(num_cards: int, parts: int = 1) -> Finding:
  """Returns how Keras' `fit` will run, if the program itself sets nothing.

  Args:
    num_cards: Number of GPUs.
    parts: Logical GPUs of each GPU.
  """
  if environment.is_disabled():
    return Finding(
        NOTE, 'next fit', 'runs as without this package: '
        f'{environment.DISABLE} keeps the plugin out',
        f'Unset {environment.DISABLE}.')
  try:
    on = settings.from_option(settings.from_text(environment.placement()))
  except ValueError as error:
    return Finding(BAD, 'next fit', f'{environment.PLACEMENT}: {error}',
                   f'Correct {environment.PLACEMENT}.')
  if on is None:
    runs = ('runs as without this package'
            if parts == 1 else 'is not placed, and runs on a part of GPU:0')
    return Finding(
        NOTE, 'next fit', runs,
        'Set gdp_placement in tf.config.optimizer.set_experimental_options, or '
        f'{environment.PLACEMENT}=1.')
  if on.cluster and on.mode == 'report':
    return Finding(
        GOOD, 'next fit',
        f'would be placed on "{on.cluster}", which is only reported')
  if not num_cards:
    return Finding(NOTE, 'next fit',
                   'is left as it is: one device leaves nothing to choose',
                   'Make logical devices to try it out.')
  num_gpus = num_cards * parts
  reason = devices.why_no_choice(
      ['device:CPU:0', *(f'device:GPU:{i}' for i in range(num_gpus))], on)
  if reason:
    return Finding(NOTE, 'next fit', f'runs as without this package: {reason}',
                   _ONE_GPU)
  kind = 'logical GPU' if parts > 1 else 'GPU'
  where = f'over the CPU and {units.count(num_gpus, kind)}'
  stays = '' if _may_round(on) else ' float arithmetic of GPUs stays there;'
  return Finding(
      GOOD, 'next fit', f'{_course_of(on)}, {where};{stays} '
      f'jit_compile="auto": {_OF_XLA[xla.handling(on)]}')


def _may_round(on: settings.Settings) -> bool:
  try:
    return on.may_round or planned.may_round(on.plan)
  except errors.GdpError:  # The plan cannot be read.
    return False


def _course_of(on: settings.Settings) -> str:
  """Returns a text about a fit that may be placed."""
  if on.mode == 'report':
    return 'would be placed, which is only reported'
  if on.times_steps:
    moving = ', its variables moved' * on.move_variables
    return ('runs its first steps as they were, then placed' + moving
            + ', and keeps what is faster')
  moving = ', its variables moved before the first step' * on.move_variables
  return 'is placed' + moving


def _calibration() -> Iterator[Finding]:
  """Finds whether the cards of this machine are calibrated."""
  from gdp_grappler.cluster import local_devices
  try:
    cluster = local_devices.local_cluster()
    lacking = local_devices.uncalibrated()
  except errors.GdpError as error:
    yield Finding(BAD, 'calibration', str(error))
    return
  for card in lacking:
    yield Finding(
        NOTE, 'calibration', f'{card} was never calibrated; steps are '
        'priced by its data sheet', _CALIBRATE)
  for part in cluster.calibrated:
    found = part.calibration
    yield Finding(
        GOOD if not found.left_out_for_time else NOTE, 'calibration',
        f'{found.card}: {len(found.kernels)} kernels measured',
        f'{_CALIBRATE}. It continues with the missing steps.'
        if found.left_out_for_time else '')


def _xla() -> Iterator[Finding]:
  flags = os.environ.get('TF_XLA_FLAGS', '')
  if '--tf_xla_auto_jit' in flags:
    yield Finding(
        NOTE, 'XLA', f'TF_XLA_FLAGS={flags}: XLA compiles clusters of placed '
        'ops, each on one device, and may round differently from steps without '
        'placement', 'For equal numbers, unset TF_XLA_FLAGS.')
  else:
    yield Finding(
        GOOD, 'XLA', 'no auto-clustering; a step that is compiled '
        '(jit_compile=True) is one op, which cannot be placed')


def _policy(policy: str | None) -> Iterator[Finding]:
  from gdp_grappler.placers.policy import learned
  from gdp_grappler.placers.policy import named_policy
  from gdp_grappler.placers.policy import shipped_policy
  try:
    if named_policy.read(policy) is None:
      learned.LearnedPlacer(policy)
    folder = policy or environment.policy_folder(
    ) or shipped_policy.shipped_policy()
    yield Finding(GOOD, 'policy', f'{folder} loads')
  except errors.PolicyMismatchError as error:
    yield Finding(BAD, 'policy', str(error))
