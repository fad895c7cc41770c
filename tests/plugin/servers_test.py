"""The list of servers has a server as long as the program refers to it."""

from __future__ import annotations

import gc
import inspect

import pytest
import tensorflow as tf

from gdp_grappler.plugin import servers


@pytest.fixture(name='connected')
def _connected(monkeypatch):
  """Wraps the constructor for one test."""
  cls, calls = servers.server_lib.Server, []
  monkeypatch.setattr(cls, '__init__', inspect.unwrap(cls.__init__))
  monkeypatch.setattr(servers, '_running', [])
  servers.install(lambda: calls.append(servers.target()))
  return calls


def _server():
  return tf.distribute.Server({'worker': ['localhost:0']}, 'worker', 0)


def test_the_latest_server_is_told_of_the_pass_and_known(connected):
  assert servers.target() == '' and not servers.addresses()
  first = _server()
  assert connected == ['']  # `connect` runs before there is a server.
  second = _server()
  assert servers.target() == second.target != first.target
  assert list(servers.addresses()) == ['/job:worker/replica:0/task:0']


def test_a_server_that_nobody_holds_is_not_held_by_us(connected):
  """Once our list kept a server, and its port, after its last user."""
  first, second = _server(), _server()
  del second
  gc.collect()
  assert servers.target() == first.target
  del first
  gc.collect()
  assert servers.target() == '' and not servers.addresses()
