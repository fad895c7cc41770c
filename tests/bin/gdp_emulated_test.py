"""Emulated GPUs where users ask for them."""

import json

import pytest

from gdp_grappler import files
from gdp_grappler.bin import gdp
from helpers import fresh
from helpers import warm

# Not with Bazel's unit tests.
pytestmark = pytest.mark.e2e

# Two ops of 3 and 4 ms and 8 bytes from one to the other.
_COSTS = ('node { name: "a" id: 1 output_info { size: 8 } compute_cost: 3000 } '
          'node { name: "b" id: 2 compute_cost: 4000 '
          'input_info { preceding_node: 1 } }')
_STEP_S = 7e-3


@pytest.fixture(name='graph')
def _graph(tmp_path):
  path = tmp_path / 'costs.pbtxt'
  path.write_text(_COSTS)
  return path


def test_simulate_says_what_the_runtime_does(graph, tmp_path, capsys):
  plan = tmp_path / 'plan.json'
  assert gdp.run([
      'place',
      str(graph), '--cluster=2xP100', '--placer=single_device',
      f'--output={plan}'
  ]) == 0
  capsys.readouterr()
  assert gdp.run(
      ['simulate',
       str(graph), f'--plan={plan}', '--emulated', '--json']) == 0
  found = json.loads(capsys.readouterr().out)
  assert found['step_time_s'] == pytest.approx(_STEP_S, rel=.01)
  assert found['emulated_step_time_s'] >= _STEP_S
  assert found['emulated_violations'] == []


def test_bench_takes_it_as_reward(graph, tmp_path):
  out = tmp_path / 'out'
  arguments = [
      'gdp_bench', f'--tasks={graph}@2xP100', '--placers=single_device',
      '--reward=emulated', f'--out_dir={out}'
  ]
  done = fresh.run_code(
      f'''{warm.MARK}
import sys
sys.argv = {arguments!r}
from placer_model.bin import gdp_bench
gdp_bench.run()
''', timeout_s=280)
  assert done.code == 0, done.stderr
  results = files.read_compressed_json(out / 'results.json.gz')
  assert not results['simulated']
  cell, = results['tasks'][0]['cells'].values()
  assert cell['status'] == 'ok' and cell['step_time_s'] >= _STEP_S
