"""The command and the environment of a child's interpreter.

A child runs one function of a module, named as 'package.module:function'. The
parent need not import that module, which may load a library that the parent
must not load. The child imports the module under its own name, so that pickled
objects have the same class in both processes.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, Callable, Iterable, Mapping

from gdp_grappler import environment as environment_lib
from gdp_grappler import errors
from gdp_grappler import spelling

_CHILD = 'gdp_grappler.processes.child'
WITHOUT_KERAS, SPELLING = '--without-keras', '--spelling='
# Variables that would make a child's TensorFlow change its graphs. The choice
# of Keras is the user's, even if this process needs another one.
_SCRUBBED = (environment_lib.PLACEMENT, environment_lib.CAPTURE_DIR,
             environment_lib.LEGACY_KERAS, 'TF_XLA_FLAGS', 'TF_CONFIG')


def command(function: str, arguments: Iterable[Any] = (),
            keras: bool = True) -> list[str]:
  """Returns the command that runs a function in a new interpreter.

  The current folder is on the child's import path only if it is on the path of
  this process. So no file in that folder is imported in place of a module of
  the same name. The child's messages spell arguments as this process does.

  Args:
    function: 'package.module:function'.
    arguments: Arguments of the function, as values for JSON.
    keras: Whether the child may import Keras. TensorFlow's start imports Keras,
      which takes a quarter of the start.

  Raises:
    GdpError: this process does not know its interpreter.
  """
  if not sys.executable:
    raise errors.GdpError(
        'Cannot start a child process: this program embeds Python, so '
        'sys.executable is empty. Set sys.executable to the interpreter.')
  options = [] if keras else [WITHOUT_KERAS]
  spelled = spelling.handed_over()
  if spelled is not None:
    options.append(SPELLING + json.dumps(spelled))
  return [
      sys.executable, '-P', '-m', _CHILD, *options, function,
      *map(json.dumps, arguments)
  ]


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
  """Returns the environment of a child.

  The environment is that of this process, without variables that change
  TensorFlow's graphs: no plugin, no XLA. The import path, the user's choice of
  Keras, and the folders of caches and policies stay.

  Args:
    changes: Variables that differ.
  """
  result = {k: v for k, v in os.environ.items() if k not in _SCRUBBED}
  result.update(environment_lib.users_keras())
  direct = result.get('no_grpc_proxy') or result.get('no_proxy')
  # Entries that are not text are left out: Python imports nothing from them.
  paths = [p for p in sys.path if isinstance(p, str) and p]
  result.update({
      environment_lib.DISABLE: '1',
      environment_lib.LOG_LEVEL: environment_lib.QUIETEST,
      'PYTHONPATH': os.pathsep.join(paths),
      # Otherwise gRPC would look for local workers behind a web proxy.
      'no_grpc_proxy': ','.join(filter(None, [direct, 'localhost,127.0.0.1'])),
  })
  return {**result, **(changes or {})}


def resolve(function: str) -> Callable[..., Any]:
  """Returns the function of a name, 'package.module:function'.

  Raises:
    ImportError: there is no such module.
    AttributeError: the module has no such function.
  """
  module, _, name = function.partition(':')
  return getattr(importlib.import_module(module), name)
