"""Records the functions of datasets, and tells which tensors they capture.

A dataset does not publish the captures of its functions, but code that moves a
variable must know all readers of the variable. A search through all objects of
a large program would be too slow. So datasets are recorded when they are made,
even if the option is never switched on.
"""

from __future__ import annotations

from typing import Any
import weakref

from gdp_grappler import method_wrapping

_MODULE, _CLASS = ('tensorflow.python.data.ops.structured_function',
                   'StructuredFunctionWrapper')
# By id, because datasets need not be hashable.
_alive: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def watch() -> None:
  """Records all functions of datasets from now on."""
  import wrapt
  wrapt.register_post_import_hook(_wrap, _MODULE)


def captured() -> set[int]:
  """Returns the ids of the tensors that functions of datasets have captured."""
  return {
      id(tensor) for wrapper in _wrappers()
      for tensor in wrapper.function.captured_inputs
  }


def _wrappers() -> list[Any]:
  from tensorflow.python.data.ops import structured_function

  from gdp_grappler.graph.sources import captures
  cls = getattr(structured_function, _CLASS)
  if not method_wrapping.is_wrapped(cls, '__init__', _record):
    return captures.instances(cls)  # The hook of `import tensorflow` is off.
  noted = (reference() for reference in _alive.valuerefs())
  return [item for item in noted if item is not None]


def _wrap(module: Any) -> None:
  cls = getattr(module, _CLASS, None)
  if cls is not None:
    method_wrapping.wrap(cls, '__init__', _record)


def _record(stock: Any, self: Any, *args: Any, **kwargs: Any) -> None:
  stock(self, *args, **kwargs)
  _alive[id(self)] = self
