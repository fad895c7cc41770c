"""How messages spell an argument: as a keyword of Python, or as a flag.

The same error may reach a user of the Python API and a user of a command. A
command says once that its user types flags.
"""

from __future__ import annotations

import contextlib
import contextvars
from typing import Any, Iterator, Mapping

_flags = contextvars.ContextVar('flags', default=False)


@contextlib.contextmanager
def as_flags() -> Iterator[None]:
  """In the context, arguments are spelled as flags of a command."""
  token = _flags.set(True)
  try:
    yield
  finally:
    _flags.reset(token)


def argument(name: str, value: Any = None) -> str:
  """What a user gives, or leaves out.

    argument('shape', {'x': (8, 3)})

  Args:
    name: Of the argument; its flag has the same name.
    value: What to give; None for the argument alone.

  Returns:
    `shape={'x': (8, 3)}`, or `--shape=x=8,3` in the context of `as_flags`;
    without a value `shape` or `--shape`.
  """
  if _flags.get():
    return f'--{name}' if value is None else f'--{name}={_typed(value)}'
  return name if value is None else f'{name}={value!r}'


def _typed(value: Any) -> str:
  """A value as it stands behind a flag."""
  if isinstance(value, Mapping):
    return ','.join(f'{key}={_typed(of_key)}' for key, of_key in value.items())
  if isinstance(value, (list, tuple)):
    return ','.join(map(str, value))
  return str(value)
