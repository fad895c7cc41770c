"""Rows of the benchmark, and what an expert's layers become on many hosts."""

from __future__ import annotations

import importlib
import json
import pathlib

import numpy as np
import pytest

from gdp_grappler.cluster import presets


@pytest.fixture(name='program')
def _program(monkeypatch):
  """Programs of `benchmarks` are installed nowhere."""
  monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2]))
  return importlib.import_module('benchmarks.many_hosts')


def test_layers_go_to_the_first_device_of_each_host(program):
  cluster = presets.preset('2x2xV100-ib')
  gpus = list(cluster.accelerators)
  found = program._over_hosts(np.array([0, *gpus]), cluster)
  # CPU 0 keeps what it has; of four layers two share a host.
  assert found.tolist() == [0, gpus[0], gpus[2], gpus[0], gpus[2]]


def test_a_row_for_each_way(program, capsys):
  assert program.main([
      '--tasks=rnnlm-2@tiny', '--cluster=2x2xV100-ib', '--time_budget_s=1',
      '--json', '--quiet'
  ]) == 0
  rows = {row['placer']: row for row in json.loads(capsys.readouterr().out)}
  assert len(rows) == 5
  assert rows['one device']['devices'] <= 1  # It may be the CPU.
  assert rows['expert, layers on hosts']['devices'] == 2
  found = rows['default without network']['step_s']
  assert found <= min(row['step_s'] for row in rows.values())


def test_bad_input_is_one_line(program, capsys):
  assert program.main(['--tasks=no-such', '--quiet']) == 2
  assert capsys.readouterr().err.count('\n') == 1
