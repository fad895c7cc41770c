"""Tests for cores."""

import os

import pytest

from gdp_grappler import control_groups
from gdp_grappler import cores
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.simulation import simulator as simulator_lib


@pytest.fixture(name='cgroups')
def _cgroups(monkeypatch, tmp_path):
  """The folder of control groups of a machine with eight cores."""
  monkeypatch.setattr(os, 'sched_getaffinity', lambda _: set(range(8)))
  monkeypatch.setattr(control_groups, '_ROOT', tmp_path)
  monkeypatch.setattr(control_groups, '_OWN', tmp_path / 'own')
  cores._quota.cache_clear()
  yield tmp_path
  cores._quota.cache_clear()


def _write(folder, **files):
  folder.mkdir(parents=True, exist_ok=True)
  for name, text in files.items():
    (folder / name.replace('__', '.')).write_text(text + '\n')


def test_that_it_was_kept_from_some_counts():
  allowed = os.sched_getaffinity(0)
  assert cores.own() <= len(allowed)
  try:
    os.sched_setaffinity(0, {min(allowed)})
    assert cores.own() == 1
    # A simulator of a job with one core of many would start a thread for each.
    assert simulator_lib.Simulator(presets.preset('2xP100')).threads == 1
  finally:
    os.sched_setaffinity(0, allowed)


def test_others_have_the_rest(monkeypatch):
  monkeypatch.setattr(cores, '_share', cores._share)
  allowed = cores.own()
  cores.keep_to(allowed + 1)
  assert cores.own() == allowed
  cores.keep_to(1)
  assert cores.own() == 1


@pytest.mark.parametrize('limit, expected', [('max 100000', 8),
                                             ('200000 100000', 2),
                                             ('150000 100000', 2),
                                             ('10000 100000', 1),
                                             ('1600000 100000', 8),
                                             ('nonsense', 8), ('', 8)])
def test_a_container_has_a_quota(cgroups, limit, expected):
  """Once a container of two cores got a thread per core of its machine."""
  _write(cgroups, own='0::/', cpu__max=limit)
  assert cores.own() == expected


def test_the_smallest_quota_counts(cgroups):
  _write(cgroups, own='0::/user/job')
  _write(cgroups / 'user' / 'job', cpu__max='400000 100000')
  assert cores.own() == 4
  cores._quota.cache_clear()
  _write(cgroups / 'user', cpu__max='300000 100000')
  assert cores.own() == 3


@pytest.mark.parametrize('quota, expected', [('-1', 8), ('250000', 3)])
def test_control_groups_of_version_1_have_quotas(cgroups, quota, expected):
  # The path is that outside of the container.
  _write(cgroups, own='5:cpuset:/other\n4:cpu,cpuacct:/docker/1f\n2:pids:/')
  _write(cgroups / 'cpu', cpu__cfs_quota_us=quota, cpu__cfs_period_us='100000')
  assert cores.own() == expected


def test_without_control_groups_all_cores_count(cgroups):
  del cgroups
  assert cores.own() == 8
