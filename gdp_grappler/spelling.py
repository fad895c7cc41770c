"""Spells an argument in messages: as a Python keyword, or as a flag.

The module also ends messages of commands.

The same error may reach a user of the Python API and a user of a command. So a
command declares once that its user types flags. The child processes of the
command get this declaration, because the user sees their errors, too.
"""

from __future__ import annotations

import contextlib
import contextvars
from typing import Any, Collection, Iterator, Mapping, Sequence

_MAIN_PROGRAM = 'gdp'

# A program and its flags. An empty set means all flags that messages name.
_Command = tuple[str, frozenset[str]]

_command = contextvars.ContextVar[_Command | None]('command', default=None)
# The command that started this process; None if no command did.
_inherited: _Command | None = None


@contextlib.contextmanager
def as_flags(
    program: str = _MAIN_PROGRAM,
    flags: Collection[str] = ()) -> Iterator[None]:
  """Spells arguments as flags of a command in the context.

  Args:
    program: Name of the command.
    flags: Names of its flags. Empty means all flags that messages name.
  """
  token = _command.set((program, frozenset(flags)))
  try:
    yield
  finally:
    _command.reset(token)


def handed_over() -> tuple[str, list[str]] | None:
  """Returns the current command as JSON for `inherit` in a child process."""
  command = _current()
  return None if command is None else (command[0], sorted(command[1]))


def inherit(command: Sequence[Any]) -> None:
  """Makes all threads of this process spell as the parent process does.

  Args:
    command: Result of `handed_over` in the parent process.
  """
  global _inherited
  program, flags = command
  _inherited = program, frozenset(flags)


def _current() -> _Command | None:
  return _command.get() or _inherited


def argument(name: str, value: Any = None) -> str:
  """Returns the spelling of an argument for a message.

    argument('shape', {'x': (8, 3)})

  Args:
    name: Name of the argument. Its flag has the same name.
    value: Value of the argument; None for the name without a value.

  Returns:
    `shape={'x': (8, 3)}`, or `--shape=x=8,3` in the context of `as_flags`.
    Without a value `shape` or `--shape`. If the command lacks the flag, the
    text also says which command has it.
  """
  command = _current()
  if command is None:
    return name if value is None else f'{name}={value!r}'
  flag = f'--{name}' if value is None else f'--{name}={_typed(value)}'
  program, flags = command
  if flags and name not in flags:
    return f'{flag} (a flag of {_MAIN_PROGRAM}, not of {program})'
  return flag


def with_end(message: str) -> str:
  """Returns a message, with 'Nothing was written.' at its end in a command.

  Functions of the Python API write no file, so their messages do not say so.

  Args:
    message: Message of an error before the result of a command is written.
  """
  return message if _current() is None else f'{message} Nothing was written.'


def _typed(value: Any) -> str:
  """Returns a value as a user types it after a flag."""
  if isinstance(value, Mapping):
    return ','.join(f'{key}={_typed(of_key)}' for key, of_key in value.items())
  if isinstance(value, (list, tuple)):
    return ','.join(map(str, value))
  return str(value)
