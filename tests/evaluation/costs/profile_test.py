"""Tests of gdp_grappler.evaluation.costs.profile."""

import dataclasses
import json

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.evaluation.costs import profile as profile_lib
from helpers import profiles


def _device(profile, **changes):
  """The profile as JSON with other fields of its first device."""
  content = json.loads(profile.read_text())
  content['devices'][0].update(changes)
  profile.write_text(json.dumps(content))
  return profile


@pytest.fixture(name='path')
def fixture_path(tmp_path):
  result = tmp_path / 'profile.json'
  profiles.make_profile(3).save(result)
  return result


def test_a_file_gives_back_what_was_written(path):
  old, new = profiles.make_profile(3), profile_lib.load(path)
  for field in ('graph', 'fingerprint', 'tensorflow', 'batch_size', 'op_names',
                'op_types'):
    assert getattr(new, field) == getattr(old, field)
  np.testing.assert_array_equal(new.flops, old.flops)
  np.testing.assert_array_equal(new.io_bytes, old.io_bytes)
  for a, b in zip(old.devices, new.devices, strict=True):
    for field in ('name', 'type', 'model', 'cores', 'pool', 'steps', 'step_s',
                  'empty_step_s', 'disturbed', 'scale', 'visit_s'):
      assert getattr(a, field) == getattr(b, field)
    for field in ('seconds', 'executions', 'workspace_bytes'):
      np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
    assert b.workspace_bytes.dtype == np.int64


def test_ops_that_were_not_timed_are_kept(path):
  old = profiles.make_profile(3)
  device = dataclasses.replace(old.devices[0], untimed=(0, 2))
  dataclasses.replace(old, devices=(device,)).save(path)
  found, = profile_lib.load(path).devices
  assert found.untimed == (0, 2) and found.timed.tolist() == [0, 1, 0]


def test_files_of_earlier_releases_have_no_untimed_ops(path):
  content = json.loads(path.read_text())
  del content['devices'][0]['untimed'], content['digest']
  path.write_text(json.dumps(content))
  assert profile_lib.load(path).devices[0].timed.all()


def test_a_missing_file(tmp_path):
  with pytest.raises(errors.GdpError, match=r'none\.json.*gdp profile'):
    profile_lib.load(tmp_path / 'none.json')


@pytest.mark.parametrize(
    'change, reason',
    [(lambda _: b'', 'not JSON'), (lambda _: b'{', 'not JSON'),
     (lambda _: b'[]', ''), (lambda _: b'{"format": "plan"}', ''),
     (lambda _: b'\0', ''), (lambda _: b'\xff\xfe\x00', ''),
     (lambda data: data[:200], 'not JSON'),
     (lambda data: data.replace(b'"version": 2', b'"version": 1'),
      'version is 1')])
def test_a_file_that_is_no_profile(path, change, reason):
  path.write_bytes(change(path.read_bytes()))
  with pytest.raises(errors.GdpError,
                     match=rf'profile\.json is not a usable.*{reason}'):
    profile_lib.load(path)


def test_a_figure_that_is_not_what_was_measured(path):
  content = json.loads(path.read_text())
  content['devices'][0]['step_s'] *= 2
  path.write_text(json.dumps(content))
  with pytest.raises(errors.GdpError, match='was changed since'):
    profile_lib.load(path)
  del content['digest']  # Changed on purpose.
  path.write_text(json.dumps(content))
  profile_lib.load(path)


@pytest.mark.parametrize('field', ['graph', 'op_names', 'flops', 'devices'])
def test_a_missing_field(path, field):
  content = json.loads(path.read_text())
  del content[field]
  path.write_text(json.dumps(content))
  with pytest.raises(errors.GdpError, match=f"field '{field}' is missing"):
    profile_lib.load(path)


@pytest.mark.parametrize('field,value',
                         [('seconds', [1, 2]), ('seconds', [1, 2, -1]),
                          ('seconds', [1, 2, None]),
                          ('seconds', [1, 2, float('nan')]),
                          ('seconds', [1, 2, 'x']), ('seconds', 'x'),
                          ('seconds', [1, 2, {}]), ('seconds', [1, 2, 9**999]),
                          ('executions', [1, 1, float('inf')]),
                          ('workspace_bytes', [[1], [1], [1]]), ('visit_s', -1),
                          ('step_s', 'x'), ('name', 3), ('cores', 0),
                          ('cores', [-1]), ('steps', 0), ('pool', True),
                          ('untimed', 1), ('untimed', [3]), ('untimed', [.5])])
def test_a_wrong_value_names_its_field(path, field, value):
  """A text in place of a number was told without its field."""
  with pytest.raises(errors.GdpError,
                     match=rf'profile\.json is not a usable .*\b{field} '):
    profile_lib.load(_device(path, **{field: value}))


def test_a_device_is_found_by_name_and_else_by_type():
  profile = profiles.make_profile(
      2, devices=(('/job:worker/replica:0/task:0/device:CPU:0', 'CPU'),
                  ('/job:worker/replica:0/task:1/device:CPU:0', 'CPU')))
  first, second = profile.devices
  assert profile.of(second.name, 'CPU') is second
  assert profile.of('/job:localhost/replica:0/task:0/device:CPU:0',
                    'CPU') is first
  assert profile.of(first.name, 'GPU') is None
