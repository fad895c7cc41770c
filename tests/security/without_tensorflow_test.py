"""Graphs with costs of their own need no TensorFlow, whoever places them."""

from __future__ import annotations

import json
import pathlib

import pytest

from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from helpers import fresh

# What an interpreter does in which nobody finds TensorFlow.
_PROGRAM = '''
import sys

class _Nowhere:

  def find_spec(self, name, path=None, target=None):
    if name.split('.')[0] in ('tensorflow', 'keras', 'tf_keras'):
      raise ImportError(f'{{name}} was asked for')

sys.meta_path.insert(0, _Nowhere())
from gdp_grappler.bin import gdp
for command in {commands!r}:
  code = gdp.run(command)
  assert code == 0, (code, command)
'''


@pytest.fixture(name='graph')
def _graph(tmp_path) -> pathlib.Path:
  """Two chains, whose ops are worth a search."""
  nodes = [{
      'name': f'n{i}', 'seconds': .01 + i % 7 / 1000, 'outputs': [1000 * i]
  } for i in range(60)]
  edges = [[f'n{i}', f'n{i + 2}'] for i in range(58)]
  path = tmp_path / 'graph.json'
  path.write_text(json.dumps({'nodes': nodes, 'edges': edges}))
  return path


def _run(commands: list[list[str]]) -> None:
  done = fresh.run_code(_PROGRAM.format(commands=commands))
  assert done.code == 0, done.stderr


@pytest.mark.e2e
def test_every_placer_that_computes(graph, tmp_path):
  plan = str(tmp_path / 'plan.json')
  placers = [
      name for name in registry.names() if not {
          placer_table.Need.POLICY, placer_table.Need.KERAS_2,
          placer_table.Need.EXPERT
      }
      & registry.get(name).needs
  ]
  assert {'local_search', 'metis', 'm_sct', 'heft', 'best_of'} <= set(placers)
  _run([[
      'place',
      str(graph), '--cluster=2xP100', f'--placer={name}', f'--output={plan}',
      '--time_budget_s=1'
  ] for name in placers])


@pytest.mark.e2e
def test_orders_prices_and_clusters(graph, tmp_path):
  plan = str(tmp_path / 'plan.json')
  _run([[
      'place',
      str(graph), '--cluster=2xP100', '--placer=metis', f'--output={plan}',
      '--order=critical_path'
  ], ['simulate', str(graph), f'--plan={plan}', '--json'],
        ['cluster', '2xP100', '--json']])
