"""Exchanges the resources that two eager tensors refer to.

Code that uses a variable holds the tensor with its handle, for example as a
capture of a traced function, and no list of these holders exists. So the tensor
stays and gets another resource. All holders then use the new resource, and the
next call of a function instantiates the function for its device. TensorFlow has
no API for this. The field of the tensor is found by its content, which
TensorFlow reports, and not by an offset in bytes. If the field is not found,
nothing is changed.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
from typing import Any, Callable

# `TFE_TensorHandle* EagerTensor_Handle(const PyObject*)` of pywrap_tensor.h.
_LIBRARY = 'lib_pywrap_tensorflow_common.so'
_SYMBOL = '_Z18EagerTensor_HandlePK7_object'
_WORD = ctypes.sizeof(ctypes.c_void_p)


def can_exchange(tensor: Any) -> bool:
  """Whether `exchange` accepts the tensor with this TensorFlow."""
  content = _content_function()
  return content is not None and _field(tensor, content) is not None


def exchange(first: Any, second: Any) -> None:
  """Exchanges the resources of two eager tensors.

  The identity, id and attributes of the tensors stay.

  Args:
    first: A tensor. The caller has to check that types and shapes are equal.
    second: The other tensor.

  Raises:
    ValueError: `can_exchange` is false for one of them.
  """
  content = _content_function()
  one = content and _field(first, content)
  other = content and _field(second, content)
  if one is None or other is None:
    raise ValueError('This is no eager tensor as TensorFlow lays it out.')
  # The thread holds Python's global lock, so no other thread reads the tensors
  # between the two assignments.
  one.value, other.value = other.value, one.value


def _field(tensor: Any, content: Callable[[Any],
                                          int]) -> ctypes.c_void_p | None:
  """Returns the field of a tensor that refers to the resource, if found."""
  from tensorflow.python.framework import ops
  if not isinstance(tensor, ops.EagerTensor):
    return None
  wanted = content(tensor)
  fields = [
      field for offset in range(0,
                                type(tensor).__basicsize__, _WORD)
      if (field := ctypes.c_void_p.from_address(id(tensor)
                                                + offset)).value == wanted
  ]
  return fields[0] if len(fields) == 1 else None


@functools.cache
def _content_function() -> Callable[[Any], int] | None:
  """Returns a function that returns the address in an eager tensor's field.

  The result is None if TensorFlow's library has no such function.
  """
  import tensorflow as tf
  path = pathlib.Path(tf.__file__).parent / 'python' / _LIBRARY
  try:
    # A library whose functions hold the interpreter's lock.
    function = ctypes.PyDLL(str(path))[_SYMBOL]
  except (AttributeError, OSError):
    return None
  function.restype = ctypes.c_void_p
  function.argtypes = [ctypes.py_object]
  return function
