"""Splits each GPU into logical GPUs.

TensorFlow gives a GPU one compute stream. Each logical GPU has a stream of its
own, and another thread dispatches its ops. So a step can become faster if it is
limited by dispatch, or by kernels that fill only a part of the card. A step
whose kernels fill the card cannot.

Cards are split at the last moment, when the eager runtime starts. The program's
own configuration is then known and stays unchanged. `arm_of` replaces
`Context.ensure_initialized` until its first call. If no card is split, one line
gives the reason.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from typing import Any, Sequence

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler.plugin import interrupts

AUTO = 'auto'
MOST_PARTS = 4  # Logical GPUs of a card.
THREAD_MODE = 'TF_GPU_THREAD_MODE'
# Parts of a card for 'auto'. The gain of more parts was never measured.
_AUTO_PARTS = 2
# 'auto' leaves a card whole if its parts would have less memory.
_LEAST_AUTO_BYTES = 4 << 30

_lock = threading.Lock()
# `_by_option` is the option's value. If it is None, `_wanted` holds: the value
# of the environment or of the latest call of `split`.
_by_option: int | str | None = None
_wanted: int | str | None = None
_stock: Any = None


def checked(value: Any) -> int | str | None:
  """Returns a valid value of `split`: a number of parts, 'auto' or None.

  Args:
    value: The user's value: a number of parts, 'auto', or None or 1 for whole
      cards.

  Raises:
    ValueError: the value is something else.
  """
  if value is None or value == AUTO:
    return value
  if (isinstance(value, bool) or not isinstance(value, int) or
      not 1 <= value <= MOST_PARTS):
    raise ValueError(
        f'split = {errors.shown(value)}; valid are 1 (whole cards), 2 to '
        f"{MOST_PARTS} (logical GPUs of each card), '{AUTO}' and None.")
  return value


def from_environment() -> int | str | None:
  """Returns GDP_SPLIT; None if it is not set. Warns if the value is wrong."""
  try:
    return in_environment()
  except ValueError as error:
    _warn(str(error))
    return None


def in_environment() -> int | str | None:
  """Returns the value of GDP_SPLIT; None if it is not set.

  Raises:
    ValueError: the value is wrong.
  """
  text = environment.split().strip().lower()
  if not text:
    return None
  try:
    return checked(int(text) if text.isdecimal() else text)
  except ValueError as error:
    raise ValueError(f'{environment.SPLIT} is ignored: {error}') from error


def split(parts: int | str = AUTO, private_threads: bool | None = None) -> None:
  """Cuts each GPU that the program can see into logical GPUs.

    gdp_grappler.split(2)

  Call it before the first op. The logical GPUs share the card's memory in equal
  parts. Cards are cut when TensorFlow's runtime starts. If that is not
  possible, one line says why.

  Args:
    parts: Logical GPUs of each card, 2 to 4. 1 leaves cards whole. 'auto' means
      2 if each part gets a few gigabytes.
    private_threads: Whether each logical GPU gets threads of its own for
      dispatch (TF_GPU_THREAD_MODE=gpu_private), or shares the threads of the
      process (global). None leaves TF_GPU_THREAD_MODE as it is.

  Raises:
    ValueError: a wrong number of parts.
  """
  arm_of(_context(), checked(parts))
  if private_threads is not None and not _context()._initialized:
    os.environ[THREAD_MODE] = 'gpu_private' if private_threads else 'global'


def arm_of(context: Any, value: int | str | None,
           by_option: bool = False) -> None:
  """Makes an existing context cut cards when it starts.

  Args:
    context: An eager context.
    value: Result of `checked`. None changes nothing or, if it is the option's,
      takes back the option's earlier value.
    by_option: Whether the value is the option's.
  """
  global _by_option, _wanted, _stock
  with _lock:
    if context._initialized:
      if value not in (None, 1, _now_wanted()):
        _warn('GPUs are not split: TensorFlow has started already. Ask for a '
              f'split before the first op, or set {environment.SPLIT}={value} '
              'in the environment.')
      return
    if by_option:
      _by_option = value
    elif value is not None:
      _by_option, _wanted = None, value
    if _stock is None and value is not None:
      _stock = type(context).ensure_initialized
      type(context).ensure_initialized = _ensure_initialized


def _ensure_initialized(self: Any) -> None:
  """Cuts cards, and starts the runtime. Restores TensorFlow's own method."""
  global _stock
  with _lock:
    stock = _stock
    if stock is not None:
      # First, because the code below may start the runtime.
      type(self).ensure_initialized = stock
      _stock = None
      if not self._initialized:
        _cut(self, _now_wanted())
  self.ensure_initialized()


def _now_wanted() -> int | str | None:
  return _wanted if _by_option is None else _by_option


def _cut(context: Any, value: int | str | None) -> None:
  """Cuts cards. After an error the program runs on whole cards."""
  if value is None or value == 1:
    return
  try:
    _say(cut(context, value))
  # The user's program has to go on after any error.
  except Exception as error:  # pylint: disable=broad-exception-caught
    if interrupts.is_of_program(error):
      raise
    _warn(f'GPUs are not split: {errors.one_line(error)}')


@dataclasses.dataclass(frozen=True)
class Cut:
  """The decision about the cards of a context.

  Attributes:
    line: Line for the user.
    limits: Memory of each logical GPU in MiB, by the name of its card; empty if
      cards stay whole.
    parts: Logical GPUs of each card; 1 if cards stay whole.
  """

  line: str
  limits: dict[str, int] = dataclasses.field(default_factory=dict)
  parts: int = 1


def cut(context: Any, value: int | str) -> str:
  """Configures logical GPUs of all visible cards of a context.

  Args:
    context: An eager context that has not started.
    value: 2 to 4, or 'auto'.

  Returns:
    Line for the user.

  Raises:
    ClusterError: TensorFlow does not describe its GPUs.
    ValueError, RuntimeError: TensorFlow refuses.
  """
  planned = plan(context, value)
  from tensorflow.python.eager import context as context_lib
  for card in context.get_visible_devices('GPU') if planned.limits else ():
    limit = planned.limits[card.name]
    context.set_logical_device_configuration(
        card, [context_lib.LogicalDeviceConfiguration(memory_limit=limit)]
        * planned.parts)
  return planned.line


def plan(context: Any, value: int | str) -> Cut:
  """Returns the decision of `cut` without changing the context.

  Args:
    context: See `cut`.
    value: See `cut`.

  Raises:
    ClusterError: TensorFlow does not describe its GPUs.
  """
  cards = context.get_visible_devices('GPU')
  if not cards:
    return Cut('split has nothing to do: TensorFlow sees no GPU')
  reason = _conflicting_setting(context, cards)
  if reason:
    return Cut(f'GPUs are not split: {reason}')
  sizes = _free_bytes([card.name for card in cards])
  unknown = [card.name for card in cards if sizes.get(card.name) is None]
  if unknown:
    return Cut(
        f'GPUs are not split: the memory of {unknown[0]} is unknown (no NVML); '
        'use tf.config.set_logical_device_configuration')
  parts = _AUTO_PARTS if value == AUTO else int(value)
  least = min(size or 0 for size in sizes.values()) // parts
  if value == AUTO and least < _LEAST_AUTO_BYTES:
    return Cut(f'GPUs are not split: each of {parts} parts would '
               f"have {least >> 20} MiB; 'split': {parts} splits them anyway")
  if least < 1 << 20:
    return Cut('GPUs are not split: their memory is in use')
  names = ', '.join(card.name.rsplit('device:', 1)[-1] for card in cards)
  return Cut(
      f'split: {names} cut into {parts} logical GPUs each, of '
      f'{least >> 20} MiB',
      {card.name: (sizes[card.name] or 0) // parts >> 20 for card in cards},
      parts)


def _conflicting_setting(context: Any, cards: Sequence[Any]) -> str:
  """The program's own configuration that prevents a cut; '' for none."""
  for card in cards:
    if context.get_logical_device_configuration(card) is not None:
      return f'the program has configured logical devices of {card.name}'
    if context.get_memory_growth(card):
      return (f'memory growth is on for {card.name}, and TensorFlow cannot '
              'grow the memory of logical GPUs')
  return ''


def _free_bytes(names: Sequence[str]) -> dict[str, int | None]:
  """Bytes that TensorFlow could allocate now, by physical device."""
  from gdp_grappler.cluster import local_devices
  found = local_devices.free_bytes()
  return {name: found.get(name) for name in names}


def _context() -> Any:
  from tensorflow.python.eager import context
  return context.context()


def _say(line: str) -> None:
  from gdp_grappler.plugin import notices
  notices.say_once(line)


def _warn(line: str) -> None:
  from gdp_grappler.plugin import notices
  notices.warn_once(line)
