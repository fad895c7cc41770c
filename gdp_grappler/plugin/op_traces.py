"""Keeps this package out of the stack traces of ops.

TensorFlow's error of an op tells where the program made the op. Methods that
this package has wrapped are on the stack then, but are no part of the program.
"""

from __future__ import annotations

import functools
import pathlib
from typing import Any

from tensorflow.python.util import tf_stack

from gdp_grappler import method_wrapping
from gdp_grappler import stack_room
from gdp_grappler import variable_scopes

_PACKAGE = pathlib.Path(__file__).parents[1]


class WithoutPackage(tf_stack.StackTraceFilter):
  """A scope whose ops do not record the frames of this package.

  Steps enter it, too, so it shares its set of files with most other scopes.
  """

  def __init__(self) -> None:
    self.internal_set = _set()

  def update(self) -> None:
    """Takes the files of the scopes around into account, if there are any."""
    if not self.parent.get_filtered_filenames() <= _files():
      super().__init__()  # A set of its own.
      super().update()

  def get_filtered_filenames(self) -> frozenset[str]:
    """Returns files of the package, and those of the scopes around."""
    return self.parent.get_filtered_filenames() | _files()


@functools.cache
def _files() -> frozenset[str]:
  # Autograph takes a copy of the set at each call that it converts. So only
  # files that can be between a program and its ops are in the set.
  rooms = (_PACKAGE / 'plugin', _PACKAGE / 'sharding')
  modules = (method_wrapping, stack_room, variable_scopes)
  return frozenset(
      (*(str(file) for room in rooms for file in room.rglob('*.py')),
       *(str(module.__file__) for module in modules)))


@functools.cache
def _set() -> Any:
  result = tf_stack.StackTraceFilter().internal_set
  result.update_to(set(_files()))
  return result
