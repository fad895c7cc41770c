"""Timings of links between tasks, and their cache."""

import json
import pathlib

import pytest

from gdp_grappler import digests
from gdp_grappler.plugin import link_timing_cache
from gdp_grappler.plugin import task_links
from helpers import alarms

_TASKS = [
    '/job:localhost/replica:0/task:0', '/job:worker/replica:0/task:0',
    '/job:worker/replica:0/task:1'
]
_NAMES = [f'{task}/device:CPU:0' for task in _TASKS]


@pytest.fixture(name='timed')
def _timed(monkeypatch, tmp_path):
  """The pairs of tasks whose links were timed."""
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path))
  counts = []

  def wire(source, target, end, clock, play):
    del end, clock, play
    counts.append((source, target))
    return task_links.Wire(1e-4, 1e9)

  monkeypatch.setattr(link_timing_cache, '_wire', wire)
  return counts


def test_what_was_timed_is_kept(timed):
  for _ in range(2):
    timing = link_timing_cache.LinkTiming(task_links.TaskLinks(), None)
    timing.once(_NAMES, {})
    timing.once(_NAMES, {})
  assert len(timed) == 3


def test_when_the_time_is_over_the_others_are_as_those_that_were_timed(timed):
  known = task_links.TaskLinks()
  link_timing_cache.LinkTiming(known, None, budget_s=-1.).once(_NAMES, {})
  assert len(timed) == 1
  cluster = known.cluster(None, _NAMES)
  assert len({link.bandwidth_bytes_per_s for link in cluster.links}) == 1
  assert 'measured' in cluster.notes[-1]


@pytest.mark.parametrize('bytes_per_s, played', [(1e5, 2), (1e9, 3)])
def test_a_slow_network_is_not_asked_for_more(bytes_per_s, played):
  """Once round trips of 4 MB took a quarter of an hour."""
  now, sizes = [0.], []

  def game(source, end, size, trips):

    def play():
      now[0] += 2 * trips * (1e-4 + size / bytes_per_s) * (source != end)

    sizes.append(size)
    play()
    return play

  wire = link_timing_cache._wire('a', 'b', 100., lambda: now[0], game)
  assert len(set(sizes)) == played
  assert now[0] < 200
  assert wire.bytes_per_s == pytest.approx(bytes_per_s, rel=.05)


@pytest.mark.parametrize('change', ['digest', 'text', 'rows'])
def test_what_is_damaged_is_timed_anew(timed, tmp_path, capfd, change):
  link_timing_cache.LinkTiming(task_links.TaskLinks(), None).once(_NAMES, {})
  kept, = pathlib.Path(tmp_path).glob('networks/*.json')
  fields = json.loads(kept.read_text())
  if change == 'digest':
    fields['wires'][0][2] = 7.
  elif change == 'rows':
    fields = digests.sealed({'wires': [1, 2]})
  kept.write_text('{' if change == 'text' else json.dumps(fields))
  link_timing_cache.LinkTiming(task_links.TaskLinks(), None).once(_NAMES, {})
  assert len(timed) == 6
  assert 'damaged' in capfd.readouterr().err


def test_who_is_alone_has_no_network(timed):
  link_timing_cache.LinkTiming(task_links.TaskLinks(),
                               None).once(['/device:CPU:0', '/device:GPU:0'],
                                          {})
  assert not timed


def test_a_server_that_is_gone_leaves_what_was_assumed(timed, monkeypatch,
                                                       capfd):

  def gone(*_):
    raise RuntimeError('gone')

  monkeypatch.setattr(link_timing_cache, '_wire', gone)
  known = task_links.TaskLinks()
  link_timing_cache.LinkTiming(known, None).once(_NAMES, {})
  cluster = known.cluster(None, _NAMES)
  assert 'measured' not in ' '.join(cluster.notes)
  assert 'cannot be timed' in capfd.readouterr().err


def test_a_timeout_of_the_program_ends_timing(timed, monkeypatch):
  """Once the program went on, and links kept assumed figures for good."""
  timing = link_timing_cache.LinkTiming(task_links.TaskLinks(), None)
  with alarms.alarm() as ring, monkeypatch.context() as context:
    context.setattr(link_timing_cache, '_wire', ring)
    with pytest.raises(alarms.TooLongError):
      timing.once(_NAMES, {})
  timing.once(_NAMES, {})
  assert len(timed) == 3
