"""Room on Python's stack for functions that make many nested calls.

CPython keeps the frames of Python functions in chunks of memory. If a frame
does not fit into the present chunk, the interpreter maps a new chunk, and the
return from the function unmaps the chunk (`push_chunk` in CPython's
Python/pystate.c). Usually that is rare. But if a chunk ends at the depth at
which a program makes most of its calls, each of these calls pays for system
calls and page faults. TensorFlow traces functions at such a depth, and the
depth depends on how many functions call each other around the trace.
"""

from __future__ import annotations

import types
from typing import Callable, ParamSpec, TypeVar

_P = ParamSpec('_P')
_T = TypeVar('_T')
# Slots of a frame, of 8 bytes each. CPython rounds the size of a chunk up to a
# power of two, so almost half of the chunk of this frame is left for others.
_SLOTS = 1 << 16


def call(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
  """Calls a function whose nested calls find room in one chunk of the stack.

  Args:
    function: A function that makes many nested calls, such as a trace.
    *args: Arguments of the function.
    **kwargs: Arguments of the function by name.

  Returns:
    The result of the function.
  """
  return _with_large_frame(function, args, kwargs)


def _call(function: Callable[..., _T], args: tuple[object, ...],
          kwargs: dict[str, object]) -> _T:
  return function(*args, **kwargs)


# `_call` with a frame that is too large for a usual chunk.
_with_large_frame = types.FunctionType(
    _call.__code__.replace(co_stacksize=_SLOTS), globals(), _call.__name__)
