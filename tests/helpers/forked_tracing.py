"""Traces for `sources` in forks of a process that has imported TensorFlow."""

from __future__ import annotations

import contextlib
from typing import Iterator
from unittest import mock

from gdp_grappler.graph.sources import tracing
from helpers import forked_calls


@contextlib.contextmanager
def forks() -> Iterator[None]:
  """Replaces new processes by forks while the context lasts."""
  modules = 'tensorflow', 'keras', tracing._WORKER.partition(':')[0]
  with (forked_calls.Calls(modules, tracing._ENVIRONMENT) as
        calls, mock.patch.object(tracing, 'calls', calls)):
    yield
