"""Timed links in the clusters of the option."""

import pytest

from gdp_grappler.cluster import resolve
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import task_links

_TASKS = '/job:localhost/replica:0/task:0', '/job:worker/replica:0/task:3'
_NAMES = [f'{task}/device:CPU:0' for task in _TASKS]


@pytest.fixture(name='known')
def _known():
  result = task_links.TaskLinks()
  result.know({frozenset(_TASKS): task_links.Wire(.5, 1e6)})
  return result


def test_a_transfer_takes_what_was_timed(known):
  cluster = known.cluster(None, _NAMES)
  for link in cluster.links:
    ends = [d for d in cluster.devices if d.name in (link.source, link.target)]
    copies_s = sum(d.copy_s + 1e6 / d.copy_bytes_per_s for d in ends)
    whole_s = link.latency_s + 1e6 / link.bandwidth_bytes_per_s + copies_s
    assert whole_s == pytest.approx(.5 + 1)
  assert 'measured' in cluster.notes[-1]


def test_what_a_user_describes_stays(known):
  assert known.cluster('2xP100', _NAMES) == resolve.resolve('2xP100')


def test_tasks_that_were_not_timed_stay(known):
  names = [_NAMES[0], '/job:worker/replica:0/task:1/device:CPU:0']
  assert known.cluster('local', names) == resolve.resolve('local', names)


def test_a_cluster_that_cannot_be_read_is_none():
  settings = settings_lib.Settings(cluster='2xP100')
  assert task_links.known_of(settings, _NAMES) == resolve.resolve('2xP100')
  wrong = settings_lib.Settings(cluster='missing.json')
  assert task_links.known_of(wrong, _NAMES) is None
