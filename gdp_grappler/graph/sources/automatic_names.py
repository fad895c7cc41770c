"""Names that Keras gives to layers that the user did not name.

Keras counts layers of each kind: 'dense', 'dense_1'. A model that is made only
to be analyzed must not be counted. Otherwise the model that the program makes
afterwards would have other names, and a plan would not fit it.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from typing import Any, Iterator

# Keras 3: module and attribute of its counters.
_KERAS_3 = 'keras.src.backend.common.global_state'
_COUNTERS = 'object_name_uids'
# tf_keras: module of its counters, which are kept by graph.
_TF_KERAS = 'tf_keras.src.backend'


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """Restores the counters of layer names afterwards."""
  keras_3 = copy.copy(_of_keras_3())
  tf_keras = {graph: copy.copy(n) for graph, n in _of_tf_keras().items()}
  try:
    yield
  finally:
    if _KERAS_3 in sys.modules:
      sys.modules[_KERAS_3].set_global_attribute(_COUNTERS, keras_3)
    by_graph = _of_tf_keras()
    by_graph.clear()
    by_graph.update(tf_keras)


def _of_keras_3() -> Any:
  """Returns a dict of numbers by kind; None if nothing was counted."""
  module = sys.modules.get(_KERAS_3)
  return module and module.get_global_attribute(_COUNTERS)


def _of_tf_keras() -> Any:
  """Returns, for each graph, a dict of numbers by kind."""
  module = sys.modules.get(_TF_KERAS)
  return {} if module is None else module.PER_GRAPH_OBJECT_NAME_UIDS
