"""Calibrates a card: step after step, until all are done or time runs out.

Results are kept after every step, so that a later calibration continues with
the missing steps. A step that failed counts as missing, because the failure may
be transient, such as a lack of memory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from typing import Callable, Iterable, Iterator

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.evaluation.calibrating import exchange
from gdp_grappler.evaluation.calibrating import steps as steps_lib
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process

# Seconds from the start of the process, before it loads TensorFlow, to the end.
DEFAULT_BUDGET_S = 26.
# Seconds that the start of the process may take.
_START_S = 180.
# Seconds that one step may take beyond the time that was left at its start.
_STEP_S = 120.
# No further step begins with fewer seconds left.
_LEAST_S = .2
Tell = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class CalibrationOptions:
  """Settings of a calibration.

  Attributes:
    budget_s: Time limit in seconds. A step that is not complete by then is
      dropped. None means no limit.
    refresh: Whether to measure known steps again.
    device_type: 'GPU', or 'CPU' for a CPU in place of a card.
    number: Number of the GPU, as TensorFlow counts GPUs.
    cache_dir: Folder of the cache; by default `environment.cache_folder()`.
    steps: Steps to measure, the most important first.
  """

  budget_s: float = DEFAULT_BUDGET_S
  refresh: bool = False
  device_type: str = 'GPU'
  number: int = 0
  cache_dir: str | os.PathLike[str] | None = None
  steps: tuple[steps_lib.CalibrationStep,
               ...] = dataclasses.field(default_factory=steps_lib.all_steps)


def calibrate(options: CalibrationOptions = CalibrationOptions(),
              tell: Tell = lambda line: None) -> calibration_lib.Calibration:
  """Measures a card of this machine, and keeps the results in the cache.

  Args:
    options: Settings of the calibration.
    tell: Function that gets lines for the user.

  Raises:
    MeasurementError: there is no card, or the process ends before the first
      step is done.
  """
  deadline = deadlines.within(options.budget_s)
  progress.doing('loading TensorFlow')
  # The worker process sees the chosen card as its first one.
  with contextlib.closing(
      worker_process.WorkerProcess(exchange.WORKER, (), _visible(options),
                                   keras=False)) as process:
    card = _card(process, options)
    result = _begun(card, options, tell)
    try:
      for name, answer in _answers(process, _missing(result, options),
                                   deadline):
        result = _with(result, name, answer)
        calibration_lib.keep(_with_rest(result, options), tell,
                             options.cache_dir)
    except worker_process.Died as error:
      if not result.done:
        raise errors.MeasurementError(
            f'Calibrating {card.name} failed: {error}. Prices stay those of '
            'its data sheet.') from error
      tell(f'The remaining steps were not measured: {error}.')
  return _with_rest(result, options)


def _answers(
    process: worker_process.WorkerProcess,
    missing: Iterable[steps_lib.CalibrationStep], deadline: deadlines.Deadline
) -> Iterator[tuple[str, exchange.Answer | messages.Failure]]:
  """Name and answer of each step, until time runs out."""
  for step in missing:
    left_s = deadline.left_s
    if left_s is not None and left_s < _LEAST_S:
      return
    progress.doing(f'timing {step.name}')
    process.send((step.name, left_s))
    yield step.name, process.receive(_STEP_S + (left_s or 0.))


def _visible(options: CalibrationOptions) -> dict[str, str]:
  """Environment variables that make the chosen card the first one.

  Another card stays visible, for transfers between cards.
  """
  if options.device_type != 'GPU' or not options.number:
    return {}
  given = os.environ.get('CUDA_VISIBLE_DEVICES')
  if given is None:
    return {'CUDA_VISIBLE_DEVICES': f'{options.number},0'}
  cards = [card for card in given.split(',') if card]
  if options.number >= len(cards):
    raise errors.MeasurementError(
        f'There is no GPU:{options.number}: CUDA_VISIBLE_DEVICES={given} '
        f'leaves {len(cards)}. Give a lower number.')
  cards.insert(0, cards.pop(options.number))
  return {'CUDA_VISIBLE_DEVICES': ','.join(cards)}


def _card(process: worker_process.WorkerProcess,
          options: CalibrationOptions) -> exchange.Card:
  try:
    process.send(exchange.Setup(options.device_type, options.number))
    answer = process.receive(_START_S)
  except worker_process.Died as error:
    raise errors.MeasurementError(
        f'TensorFlow cannot be started to calibrate: {error}. Run: gdp '
        'doctor.') from error
  if isinstance(answer, messages.Failure):
    raise errors.MeasurementError(
        f'There is nothing to calibrate: {answer.message}. Run gdp '
        'calibrate --output=FILE where the card is, with TensorFlow\'s CUDA '
        'build (pip install "tensorflow[and-cuda]"); on other machines give '
        '--calibration=FILE to gdp place.')
  return answer


def _begun(card: exchange.Card, options: CalibrationOptions,
           tell: Tell) -> calibration_lib.Calibration:
  """The card's earlier calibration; an empty one if there is none to use."""
  fresh = calibration_lib.Calibration(card.name, card.driver, card.tensorflow,
                                      options.device_type)
  if options.refresh:
    return fresh
  known = calibration_lib.cached(card.name, card.driver, card.tensorflow, tell,
                                 options.cache_dir)
  if known is None or known.device_type != options.device_type:
    return fresh
  known = _without_failures(known, options)
  if _missing(known, options):
    tell(f'Continuing the calibration of {card.name}: {len(known.done)} steps '
         'are done; gdp calibrate --refresh measures all again.')
  else:
    tell(
        f'{card.name} is calibrated; gdp calibrate --refresh measures it again.'
    )
  return known


def _missing(
    known: calibration_lib.Calibration,
    options: CalibrationOptions) -> tuple[steps_lib.CalibrationStep, ...]:
  done = set(known.done)
  return tuple(step for step in options.steps if step.name not in done)


def _with(
    known: calibration_lib.Calibration, name: str,
    answer: exchange.Answer | messages.Failure) -> calibration_lib.Calibration:
  """Adds the answer of a step. A step is done if its answer is complete."""
  if isinstance(answer, messages.Failure):
    return dataclasses.replace(
        known, left_out=(*known.left_out, f'{name}: {answer.message}'))
  if not answer.complete:
    return known
  return dataclasses.replace(
      known, figures=tuple({**dict(known.figures), **answer.figures}.items()),
      kernels=(*known.kernels, *answer.kernels), done=(*known.done, name),
      left_out=(*known.left_out, *answer.left_out))


def _without_failures(
    known: calibration_lib.Calibration,
    options: CalibrationOptions) -> calibration_lib.Calibration:
  """Removes failed steps, and all messages about missing steps.

  Files of earlier releases list failed steps as done.
  """
  failed = {step.name for step in options.steps if _failed(known, step)}
  return dataclasses.replace(
      known, done=tuple(name for name in known.done if name not in failed),
      left_out=tuple(why for why in known.left_out
                     if why not in known.left_out_for_time and
                     why.split(': ')[0] not in failed))


def _failed(known: calibration_lib.Calibration,
            step: steps_lib.CalibrationStep) -> bool:
  """Whether a message says that the whole step failed."""
  return any(why.startswith(f'{step.name}: ') for why in known.left_out)


def _with_rest(known: calibration_lib.Calibration,
               options: CalibrationOptions) -> calibration_lib.Calibration:
  """Adds messages about steps for which no time was left."""
  rest = tuple(f'{step.name}: {calibration_lib.NO_TIME}'
               for step in _missing(known, options) if not _failed(known, step))
  return dataclasses.replace(known, left_out=(*known.left_out, *rest))
