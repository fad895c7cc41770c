"""What listens is told by where it can be reached from."""

import socket

import pytest

from gdp_grappler.evaluation.measuring import listening


def _listener(family, address):
  result = socket.socket(family)
  if family == socket.AF_INET6:
    result.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
  result.bind((address, 0))
  result.listen()
  return result


@pytest.mark.parametrize('family, address, shown', [
    (socket.AF_INET, '127.0.0.1', None),
    (socket.AF_INET, '127.1.2.3', None),
    (socket.AF_INET6, '::ffff:127.0.0.1', None),
    (socket.AF_INET, '0.0.0.0', '0.0.0.0'),
    (socket.AF_INET6, '::ffff:0.0.0.0', '::ffff:0:0'),
])
def test_only_other_than_the_loopback_is_named(family, address, shown):
  with _listener(family, address) as opened:
    found = listening.outside_loopback()
    port = opened.getsockname()[1]
    assert any(f.endswith(f':{port}') for f in found) == bool(shown)
    if shown:
      assert f'{shown}:{port}' in found


def test_what_does_not_listen_is_not_named():
  with socket.socket() as bound:
    bound.bind(('0.0.0.0', 0))
    port = bound.getsockname()[1]
    assert not any(f.endswith(f':{port}') for f in listening.outside_loopback())
