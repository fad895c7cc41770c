"""The main program of child processes; see `launching.command`."""

from __future__ import annotations

import gc
import json
import os
import sys

from gdp_grappler import environment
from gdp_grappler import spelling
from gdp_grappler.processes import launching

# Imported objects are no garbage. With Python's own threshold, the garbage
# collector takes a considerable part of TensorFlow's start.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main(*arguments: str) -> None:
  """Calls a function.

  Args:
    *arguments: `launching.WITHOUT_KERAS` if Keras is forbidden;
      `launching.SPELLING` with JSON if the parent spells arguments in its own
      way; 'package.module:function'; and the arguments of the function as JSON.
  """
  gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
  if arguments[0] == launching.WITHOUT_KERAS:
    sys.modules['keras'] = None  # type: ignore[assignment]  # Cannot be found.
    os.environ.pop(environment.LEGACY_KERAS, None)  # No tf_keras, either.
    arguments = arguments[1:]
  if arguments[0].startswith(launching.SPELLING):
    spelling.inherit(json.loads(arguments[0].removeprefix(launching.SPELLING)))
    arguments = arguments[1:]
  launching.resolve(arguments[0])(*map(json.loads, arguments[1:]))


if __name__ == '__main__':
  main(*sys.argv[1:])
