"""The pass changes no numbers, unless the option allows rounding."""

import dataclasses
import json

import pytest

from gdp_grappler.cluster import presets
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin import task_links
from helpers import graph_defs

_CPU = (graph_defs.CPU(0),)
_GPUS = (graph_defs.CPU(0), graph_defs.GPU(0), graph_defs.GPU(1))
_RANDOM = settings_lib.Settings(placer='random', keep_best=False,
                                cluster='2xP100')


def _source(*nodes, devices=_GPUS):
  return graph_defs.source(graph_defs.graph_def(*nodes), devices=devices)


@pytest.mark.parametrize('at_home', [graph_defs.CPU(0), graph_defs.GPU(1)])
def test_float_arithmetic_keeps_to_its_kind_of_device(at_home):
  source = _source(*graph_defs.branches(at_home))
  for seed in range(8):
    outcome = optimizer.optimize(source,
                                 dataclasses.replace(_RANDOM, seed=seed))
    on = dict(
        zip([n.name for n in source.graph_def.node], outcome.devices or
            [n.device for n in source.graph_def.node]))
    kind = at_home.rstrip('01')
    assert on['b0'].startswith(kind) and on['b1'].startswith(kind)
    assert 'differently' not in outcome.message


def test_a_program_without_gpus_is_reported_on_as_one_that_has_them():
  source = _source(*graph_defs.branches(graph_defs.CPU(0)), devices=_CPU)
  settings = settings_lib.Settings(cluster='2xP100', mode='report',
                                   placer='metis')
  said = optimizer.optimize(source, settings)
  # The report compares with one GPU, where TensorFlow would put the ops.
  alone = optimizer.optimize(_source(*graph_defs.branches(graph_defs.GPU(0))),
                             settings)
  assert alone.before_s == said.before_s
  assert 'would be placed' in said.message and 'differently' not in said.message


def test_a_plan_that_may_round_lets_the_pass(tmp_path):
  source = _source(*graph_defs.branches(graph_defs.GPU(0)))
  plan = tmp_path / 'plan.json'
  names = [node.name for node in source.graph_def.node]
  fields = dict(
      format='gdp-plan', version=1, graph='test', fingerprint='',
      cluster='2xP100', devices={
          name: 'CPU:0' if name.startswith('b') else 'GPU:0' for name in names
      })
  plan.write_text(json.dumps({**fields, 'may_round': True}))
  settings = settings_lib.Settings(plan=str(plan), cluster='2xP100')
  outcome = optimizer.optimize(source, settings)
  on = dict(zip(names, outcome.devices))
  assert on['b0'] == on['b1'] == graph_defs.CPU(0)
  assert '2 ops will round differently' in outcome.message
  plan.write_text(json.dumps(fields))
  kept = optimizer.optimize(source, settings)
  on = dict(
      zip(names, kept.devices or [n.device for n in source.graph_def.node]))
  assert on['b0'] == on['b1'] == graph_defs.GPU(0)
  assert '2 would round differently' in kept.message
  assert 'may_round allows it' in kept.message


def test_what_only_the_cpu_could_hold_is_said(monkeypatch):
  source = _source(*graph_defs.branches(graph_defs.GPU(0)))
  cluster = presets.preset('2xP100')
  cpu, *gpus = cluster.devices
  small = dataclasses.replace(
      cluster, devices=(
          cpu,
          *(dataclasses.replace(gpu, memory_bytes=1 << 20) for gpu in gpus)))
  monkeypatch.setattr(task_links.resolve, 'resolve', lambda *_: small)
  said = optimizer.optimize(source, settings_lib.Settings(placer='random'))
  assert 'it exceeds a memory: ' in said.message
  assert 'may_round lets it move' in said.message


def test_a_gpu_that_the_cluster_lacks_is_one_of_those_that_it_has():
  source = _source(*graph_defs.branches(graph_defs.GPU(1)))
  outcome = optimizer.optimize(
      source, settings_lib.Settings(placer='random', cluster='1xP100'))
  assert outcome.before_s < float('inf')
  assert 'of its pin' not in outcome.message
