import types

import pytest

from gdp_grappler import variable_scopes
from gdp_grappler.plugin import asked_devices
from gdp_grappler.plugin import settings
from gdp_grappler.plugin.fitting import asked_weights

_DEVICES = tuple(
    f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(2))


def _of(*variables, **option):
  """Calls `of` with variables given as (requested device, device)."""
  known = {
      i: types.SimpleNamespace(_gdp_scope=scope, device=device, name=f'v{i}')
      for i, (scope, device) in enumerate(variables)
  }
  return asked_weights.of(known, types.SimpleNamespace(devices=_DEVICES),
                          settings.Settings(**option))


@pytest.fixture(name='warned')
def _warned(monkeypatch):
  result = []
  monkeypatch.setattr(asked_devices, '_warned', set())
  monkeypatch.setattr(asked_devices.notices, 'warn_once', result.append)
  return result


def test_those_that_are_where_they_were_asked_to_be():
  assert _of((_DEVICES[1], _DEVICES[1]), ('', _DEVICES[0]),
             (_DEVICES[1], _DEVICES[0])) == {0}


def test_none_under_a_plan_or_if_ignored():
  asked = (_DEVICES[1], _DEVICES[1])
  assert _of(asked, pins='ignore') == _of(asked, plan='p.json') == frozenset()


def test_none_of_a_cluster_that_is_not_there():
  assert _of((_DEVICES[1], _DEVICES[1]), cluster='nowhere') == frozenset()


def test_missing_device_is_told(warned):
  missing = _DEVICES[0].replace('CPU:0', 'GPU:3')
  assert _of((missing, _DEVICES[0])) == frozenset()
  assert 'tf.device asks for GPU:3' in warned[0] and '"v0"' in warned[0]
  assert variable_scopes.device(types.SimpleNamespace(_gdp_scope=missing))
