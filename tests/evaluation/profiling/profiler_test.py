"""Tests of evaluation.profiling.profiler: real steps of real graphs."""

import dataclasses
import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.cluster import local_devices
from gdp_grappler.evaluation.costs import profiled_costs
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.profiling import contention
from gdp_grappler.evaluation.profiling import profiler
from gdp_grappler.evaluation.profiling import profiling_worker
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import sources
from gdp_grappler.processes import worker_process
from helpers import profiles

# Not with Bazel's unit tests.
pytestmark = pytest.mark.e2e

_TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'
_CORE = min(os.sched_getaffinity(0))


def _source(name):
  return sources.load(str(_TESTDATA / f'{name}_train_step.pb'))


@pytest.fixture(name='lasting')
def fixture_lasting(monkeypatch):
  """Steps take longer than empty ones, and a chain of ops longer than none.

  On a busy machine those of a tiny graph may not.
  """
  stock = profiler._record

  def record(*arguments):
    seen = stock(*arguments)
    return dataclasses.replace(
        seen, empty_step_s=min(seen.empty_step_s, seen.step_s / 2),
        chain_visit_s=max(seen.chain_visit_s, 1e-9))

  monkeypatch.setattr(profiler, '_record', record)


@pytest.fixture(name='no_process')
def fixture_no_process(monkeypatch):
  """Makes starting a process an error."""

  def refuse(*unused_arguments, **unused_options):
    raise AssertionError('a process was started')

  def arm():
    monkeypatch.setattr(worker_process, 'WorkerProcess', refuse)

  return arm


@pytest.mark.parametrize('name', ['dense', 'lstm'])
def test_parts_of_a_step_add_up(name, tmp_path, lasting):
  del lasting
  source = _source(name)
  graph = graph_def_io.read(source)
  profile = profiler.profile_graph(source, cores=(_CORE,), steps=3,
                                   cache_dir=tmp_path)
  measured, = profile.devices
  assert profile.fingerprint == graph.fingerprint
  assert profile.tensorflow == tf.__version__
  assert measured.cores == (_CORE,) and measured.steps == 3
  assert measured.step_s >= measured.empty_step_s > 0
  assert measured.step_s == pytest.approx(measured.seconds.sum()
                                          + measured.visits.sum()
                                          * measured.visit_s
                                          + measured.empty_step_s)
  assert measured.visit_s > 0 and measured.scale <= 1
  # What a simulator adds up is the step as well.
  cluster = local_devices.local_cluster([measured.name])
  seconds = profiled_costs.ProfiledCostModel(profile).op_seconds(graph, cluster)
  assert seconds.sum() + measured.empty_step_s == pytest.approx(measured.step_s)
  assert (seconds > 0).all()


def test_every_op_that_runs_has_a_record(tmp_path):
  source = _source('lstm')
  graph = graph_def_io.read(source)
  measured, = profiler.profile_graph(source, steps=2,
                                     cache_dir=tmp_path).devices
  silent = {graph.op_types[i] for i in np.flatnonzero(measured.executions == 0)}
  assert silent <= {'_Arg'}  # An argument that nobody reads.
  ran = dict(zip(graph.names, measured.executions))
  loops = {count for name, count in ran.items() if '/while/' in name}
  assert max(loops) > 1  # A loop's ops run once per iteration.
  matmul = [i for i, t in enumerate(graph.op_types) if t == 'MatMul']
  assert (measured.seconds[matmul] > 0).all()


def test_a_profile_is_found_again(tmp_path, no_process, lasting):
  del lasting
  source, said = _source('dense'), []
  first = profiler.profile_graph(source, steps=2, cache_dir=tmp_path)
  no_process()
  again = profiler.profile_graph(source, steps=2, cache_dir=tmp_path,
                                 tell=said.append)
  assert again.devices[0].step_s == first.devices[0].step_s
  assert 'Reusing the profile of dense_train_step' in said[0]
  for other in (dict(refresh=True), dict(steps=3), dict(batch_size=7),
                dict(pool=2)):
    with pytest.raises(AssertionError, match='was started'):
      profiler.profile_graph(source,
                             **{'steps': 2, 'cache_dir': tmp_path, **other})
  path, = (tmp_path / 'profiles').iterdir()
  assert path.stat().st_mode & 0o777 == 0o600
  path.write_text('{')
  said.clear()
  with pytest.raises(AssertionError, match='was started'):
    profiler.profile_graph(source, steps=2, cache_dir=tmp_path,
                           tell=said.append)
  assert 'not a usable profile' in said[0] and 'anew' in said[0]


@pytest.mark.parametrize('changes, reason', [
    ({}, 'no longer than one that does nothing (60 us)'),
    (dict(step_s=1., untimed=(1, 2),
          complete=False), 'before 2 ops of dense_train_step were timed'),
], ids=['short', 'untimed'])
def test_what_is_no_whole_profile_is_not_kept(changes, reason, tmp_path,
                                              monkeypatch):
  """Missing times were once reused as 0 s by all later runs."""
  said = []
  monkeypatch.setattr(
      profiler.calls, 'call',
      lambda unused_target, setup, **unused_options: dataclasses.replace(
          _free(len(setup.op_names)), **changes))
  found, = profiler.profile_graph(_source('dense'), steps=2, cache_dir=tmp_path,
                                  tell=said.append).devices
  assert found.untimed == changes.get('untimed', ())
  assert found.seconds.any() == bool(changes)
  assert reason in said[-1]
  assert not list(tmp_path.glob('profiles/*'))


def test_a_profile_says_how_many_steps_were_traced(tmp_path, lasting,
                                                   no_process):
  """A profile cut short once claimed all of its steps and was reused."""
  del lasting
  source, said = _source('dense'), []
  profile = profiler.profile_graph(source, budget_s=0., cache_dir=tmp_path,
                                   tell=said.append)
  traced = profile.devices[0].steps
  assert 0 < traced < profiler.DEFAULT_STEPS
  assert f'ended after {traced} of {profiler.DEFAULT_STEPS} steps' in said[-1]
  no_process()
  again = profiler.profile_graph(source, steps=traced, cache_dir=tmp_path)
  assert again.devices[0].steps == traced
  with pytest.raises(AssertionError, match='was started'):
    profiler.profile_graph(source, cache_dir=tmp_path)


def _free(num_ops):
  return profiling_worker.Recording(6e-5, 7e-5, 0., 1e-7,
                                    np.full(num_ops, 1e-6), np.ones(num_ops),
                                    np.zeros(num_ops, np.int64), 2)


def test_a_graph_that_fails_says_so(tmp_path):
  graph = tf.Graph()
  with graph.as_default():
    zero = tf.raw_ops.Sub(x=tf.constant(1), y=tf.constant(1))
    broken = tf.raw_ops.FloorDiv(x=tf.constant(1), y=zero, name='broken')
  source = source_graph.SourceGraph('failing', graph.as_graph_def(), (),
                                    (broken.op.name,))
  with pytest.raises(errors.MeasurementError,
                     match='failing does not run on.*zero'):
    profiler.profile_graph(source, cache_dir=tmp_path)
  assert not list(tmp_path.glob('profiles/*'))


def test_local_workers_are_profiled_one_by_one_and_clocked_together_once(
    tmp_path, no_process, lasting, monkeypatch):
  del lasting
  monkeypatch.setattr(contention, '_ROUNDS', 1)
  monkeypatch.setattr(contention, '_WINDOW_S', .1)
  source, told = _source('dense'), []

  def profiled():
    return profiler.profile_local_workers(source, 2, steps=1,
                                          cache_dir=tmp_path, tell=told.append)

  profile = profiled()
  assert [d.name for d in profile.devices
         ] == list(local_workers.device_names(2))
  for measured in profile.devices:
    assert (measured.executions > 0).sum() >= 190
    assert measured.step_s == pytest.approx(measured.seconds.sum()
                                            + measured.visits.sum()
                                            * measured.visit_s
                                            + measured.empty_step_s)
  path, = (tmp_path / 'contention').iterdir()
  shares = [d.contention for d in profile.devices]
  assert shares == json.loads(path.read_text())
  assert {d.bus for d in profile.devices} == {'2 local workers'}
  assert sum('all 2 workers' in line for line in told) == 1
  no_process()
  again = profiled()
  assert again.devices[1].step_s == profile.devices[1].step_s
  assert [d.contention for d in again.devices] == shares
  assert sum('all 2 workers' in line for line in told) == 1
  path.write_text('damaged')
  with pytest.raises(AssertionError, match='was started'):
    profiled()
  assert sum('all 2 workers' in line for line in told) == 2


def test_profiles_of_the_helper_add_up():
  measured, = profiles.make_profile(3).devices
  assert measured.step_s == pytest.approx(6e-3 + 3e-6 + 1e-5)
