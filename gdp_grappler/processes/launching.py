"""How a child's interpreter is started: its command and its environment.

A child runs one function of a module, named as 'package.module:function'. The
parent need not import that module, which may load a library that is not for
the parent; the child imports it under its own name, so that what is pickled
there has the same class here.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any, Callable, Iterable, Mapping

from gdp_grappler import environment as environment_lib
from gdp_grappler import spelling

_CHILD = 'gdp_grappler.processes.child'
WITHOUT_KERAS, SPELLING = '--without-keras', '--spelling='
# What would make a child's TensorFlow run another graph than it is given. Which
# Keras it has is for the user to say, not for us, who may need another.
_SCRUBBED = (environment_lib.PLACEMENT, environment_lib.CAPTURE_DIR,
             environment_lib.LEGACY_KERAS, 'TF_XLA_FLAGS', 'TF_CONFIG')


def command(function: str, arguments: Iterable[Any] = (),
            keras: bool = True) -> list[str]:
  """The command that runs a function in an interpreter of its own.

  The current folder is not on the child's import path unless it is on ours: a
  file there that is called like a module of somebody's is not run. Its messages
  spell arguments as ours do.

  Args:
    function: 'package.module:function'.
    arguments: What it is called with; JSON.
    keras: Whether it may import Keras. TensorFlow does so first of all, which
      is a quarter of its start.
  """
  options = [] if keras else [WITHOUT_KERAS]
  spelled = spelling.handed_over()
  if spelled is not None:
    options.append(SPELLING + json.dumps(spelled))
  return [
      sys.executable, '-P', '-m', _CHILD, *options, function,
      *map(json.dumps, arguments)
  ]


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
  """The variables of a child: ours, without what would steer it.

  Without the plugin and XLA, with our import path and the Keras that the user
  has chosen. Where things are kept (cache, policy) stays.

  Args:
    changes: Variables that differ.
  """
  result = {k: v for k, v in os.environ.items() if k not in _SCRUBBED}
  result.update(environment_lib.users_keras())
  direct = result.get('no_grpc_proxy') or result.get('no_proxy')
  result.update({
      environment_lib.DISABLE: '1',
      environment_lib.LOG_LEVEL: environment_lib.QUIETEST,
      'PYTHONPATH': os.pathsep.join(p for p in sys.path if p),
      # gRPC would look for local workers behind a proxy for web pages.
      'no_grpc_proxy': ','.join(filter(None, [direct, 'localhost,127.0.0.1'])),
  })
  return {**result, **(changes or {})}


def resolve(function: str) -> Callable[..., Any]:
  """The function of a name, 'package.module:function'.

  Raises:
    ImportError: no such module.
    AttributeError: no such function in it.
  """
  module, _, name = function.partition(':')
  return getattr(importlib.import_module(module), name)
