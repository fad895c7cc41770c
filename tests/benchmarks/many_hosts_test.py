"""Rows of the benchmark, and what an expert's layers become on many hosts."""

from __future__ import annotations

import json

import numpy as np

from gdp_grappler.cluster import presets
from helpers import benchmarks

many_hosts = benchmarks.module('many_hosts')


def test_layers_go_to_the_first_device_of_each_host():
  cluster = presets.preset('2x2xV100-ib')
  gpus = list(cluster.accelerators)
  found = many_hosts._over_hosts(np.array([0, *gpus]), cluster)
  # CPU 0 keeps what it has; of four layers two share a host.
  assert found.tolist() == [0, gpus[0], gpus[2], gpus[0], gpus[2]]


def test_a_row_for_each_way(capsys):
  assert many_hosts.main([
      '--tasks=rnnlm-2@tiny', '--cluster=2x2xV100-ib', '--time_budget_s=1',
      '--json', '--quiet'
  ]) == 0
  rows = {row['placer']: row for row in json.loads(capsys.readouterr().out)}
  assert len(rows) == 5
  # It may be the CPU, while the feed stays on a GPU, as in the graph's file.
  assert rows['one device']['devices'] <= 2
  assert rows['expert, layers on hosts']['devices'] == 2
  found = rows['default without network']['step_s']
  assert found <= min(row['step_s'] for row in rows.values())


def test_bad_input_is_one_line(capsys):
  assert many_hosts.main(['--tasks=no-such', '--quiet']) == 2
  assert capsys.readouterr().err.count('\n') == 1


def test_over_an_expert_that_does_not_fit_there_is_no_ratio():
  """The ratio was "infx"."""
  row = many_hosts._Row('rnnlm-8', 9, 'hierarchical', .001, float('inf'), 2, 3.)
  assert row.cells == ('rnnlm-8', '9', 'hierarchical', '1.0 ms', '-', '2',
                       '3.0')
