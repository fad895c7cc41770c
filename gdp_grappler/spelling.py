"""How messages spell an argument: as a keyword of Python, or as a flag.

The same error may reach a user of the Python API and a user of a command. A
command says once that its user types flags, and the processes that it starts
are told, since their errors are its errors.
"""

from __future__ import annotations

import contextlib
import contextvars
from typing import Any, Collection, Iterator, Mapping, Sequence

_MAIN_PROGRAM = 'gdp'

# A program and the flags that it has; no flags: it has them all.
_Command = tuple[str, frozenset[str]]

_command = contextvars.ContextVar[_Command | None]('command', default=None)
# Of a process that works for a command.
_inherited: _Command | None = None


@contextlib.contextmanager
def as_flags(
    program: str = _MAIN_PROGRAM,
    flags: Collection[str] = ()) -> Iterator[None]:
  """In the context, arguments are spelled as flags of a command.

  Args:
    program: The command.
    flags: Names of its flags; none if it has all that messages name.
  """
  token = _command.set((program, frozenset(flags)))
  try:
    yield
  finally:
    _command.reset(token)


def handed_over() -> tuple[str, list[str]] | None:
  """What a child process is to spell, for `inherit`; JSON."""
  command = _current()
  return None if command is None else (command[0], sorted(command[1]))


def inherit(command: Sequence[Any]) -> None:
  """Has this process, in all threads, spell as the one that started it.

  Args:
    command: Of `handed_over`.
  """
  global _inherited
  program, flags = command
  _inherited = program, frozenset(flags)


def _current() -> _Command | None:
  return _command.get() or _inherited


def argument(name: str, value: Any = None) -> str:
  """What a user gives, or leaves out.

    argument('shape', {'x': (8, 3)})

  Args:
    name: Of the argument; its flag has the same name.
    value: What to give; None for the argument alone.

  Returns:
    `shape={'x': (8, 3)}`, or `--shape=x=8,3` in the context of `as_flags`;
    without a value `shape` or `--shape`. Of a flag that the command lacks, also
    which command has it.
  """
  command = _current()
  if command is None:
    return name if value is None else f'{name}={value!r}'
  flag = f'--{name}' if value is None else f'--{name}={_typed(value)}'
  program, flags = command
  if flags and name not in flags:
    return f'{flag} (a flag of {_MAIN_PROGRAM}, not of {program})'
  return flag


def _typed(value: Any) -> str:
  """A value as it stands behind a flag."""
  if isinstance(value, Mapping):
    return ','.join(f'{key}={_typed(of_key)}' for key, of_key in value.items())
  if isinstance(value, (list, tuple)):
    return ','.join(map(str, value))
  return str(value)
