"""`make demo`: a policy for InceptionV3, from capture to a placed fit.

Each step is a command that a user could type; this script types them, keeps
TensorFlow's start-up lines out of sight, and compares the results.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
from typing import Any, Mapping

import numpy as np

from gdp_grappler import cores
from gdp_grappler import environment
from gdp_grappler.processes import launching

HERE = pathlib.Path(os.path.relpath(pathlib.Path(__file__).parent))
OUTPUT = pathlib.Path('demo_output')
CAPTURES = OUTPUT / 'captured'
MODEL_DIR = OUTPUT / 'model'
TRACE = OUTPUT / 'schedule.json'
ITERATIONS = 100  # Rounds of rollouts and updates, enough for a demonstration.
CLUSTER = '2xP100'
# Allowed relative difference of losses.
LARGEST_DIFFERENCE = 1e-4
# TensorFlow's memory optimizer lets gradients of InceptionV3 be added in the
# order of arrival, which Adam makes into differences of 1e-4: placed runs do
# not even equal each other. Runs that are compared do without it.
_IN_ORDER = {'DEMO_IN_ORDER': '1'}
# Lines that TensorFlow prints when it starts on a machine without a GPU.
_START_UP = re.compile(
    r'WARNING: All log messages before absl|[IWE]0000 .*(port|cuda\w*|'
    r'cpu_feature_guard)\.cc|To enable the following instructions')


def main() -> int:
  """Runs the steps; 0 if the placed losses agree with the unplaced ones."""
  start = time.time()
  OUTPUT.mkdir(exist_ok=True)
  for old in CAPTURES.glob('*'):
    old.unlink()
  _say('1. Train InceptionV3 as it is, on one device, and capture its graphs')
  _train({'DEMO_DEVICES': '1', environment.CAPTURE_DIR: str(CAPTURES)})
  graph = max(CAPTURES.glob('*.pb'), key=lambda path: path.stat().st_size)
  print(f'Captured {graph}')

  _say(f'2. Learn to place it on {CLUSTER} (simulated)')
  _run(_tool('gdp_train'), f'--graph={graph}', f'--cluster={CLUSTER}',
       '--reward=simulated', f'--model_dir={MODEL_DIR}',
       f'--iterations={ITERATIONS}', '--seed=0', '--network=one_shot')

  _say('3. Draw the simulated schedule of the best placement')
  plan = next((MODEL_DIR / 'plans').glob('*.json'))
  _run(_tool('gdp'), 'simulate', str(graph), f'--cluster={CLUSTER}',
       f'--plan={plan}', f'--trace={TRACE}')
  print(f'Open {TRACE} in https://ui.perfetto.dev or chrome://tracing')

  _say('4. Train as it is and with the policy, over 4 logical CPU devices')
  print('keep_best is off to show the mechanism: logical CPU devices share '
        'their cores, so that no placement can be faster.')
  plain = _train({'DEMO_DEVICES': '4', **_IN_ORDER})
  placed = _train_placed('gdp_one_shot', policy=str(MODEL_DIR / 'policy'))
  if len(placed['ops']) == 1 and cores.own() > 1:
    print('The policy keeps all ops on one device. round_robin spreads them.')
    placed = _train_placed('round_robin')
  return _report(plain, placed, time.time() - start)


def _train_placed(placer: str, **option: str) -> dict[str, Any]:
  """Runs train.py over four devices, placed by a placer."""
  settings = {'placer': placer, 'keep_best': False, **option}
  return _train({
      'DEMO_DEVICES': '4', environment.PLACEMENT: json.dumps(settings),
      **_IN_ORDER
  })


def _report(plain: dict[str, Any], placed: dict[str, Any],
            seconds: float) -> int:
  """Prints what the two runs did, and whether they agree."""
  print('Ops per device, from the partition graphs that TensorFlow ran:')
  for name, run in (('as it was', plain), ('placed', placed)):
    ops = ', '.join(f'{d} {n}' for d, n in run['ops'].items())
    print(f'  {name:10} {ops}')
  for name, run in (('as it was', plain), ('placed', placed)):
    print(f'  losses {name:10} {run["losses"]}')
  # Unlike Python's, this maximum is NaN if a loss is.
  apart = np.max([
      abs(a - b) / abs(a)
      for a, b in zip(plain['losses'], placed['losses'], strict=True)
  ])
  agree = apart <= LARGEST_DIFFERENCE
  spread = len(placed['ops']) > 1
  print(f'\nLosses {"agree" if agree else "DIFFER"}: {apart:.1e} apart; ops '
        f'ran on {len(placed["ops"])} devices. {seconds:.0f} s in all.')
  if not spread and cores.own() == 1:
    print('With one core there is nothing to place over: logical CPU devices '
          'are that one. With two or more, ops run on several.')
    spread = True
  return 0 if agree and spread else 1


def _train(variables: Mapping[str, str]) -> dict[str, Any]:
  """Runs train.py and returns what it reports."""
  text = _run(sys.executable, str(HERE / 'train.py'), keep_output=True,
              variables=variables)
  return json.loads(text.splitlines()[-1])


def _run(*command: str, keep_output: bool = False,
         variables: Mapping[str, str] | None = None) -> str:
  """Runs a command, its standard error without TensorFlow's start-up."""
  variables = variables or {}
  words = [pathlib.Path(command[0]).name, *command[1:]]
  print('$', *(f'{k}={shlex.quote(v)}' for k, v in variables.items()),
        *map(shlex.quote, words), flush=True)
  process = subprocess.Popen(
      command, text=True, stderr=subprocess.PIPE,
      stdout=subprocess.PIPE if keep_output else None,
      env=launching.environment({environment.DISABLE: '0', **variables}))
  assert process.stderr is not None
  for line in process.stderr:
    if not _START_UP.match(line):
      print(line, end='', file=sys.stderr, flush=True)
  output = process.stdout.read() if process.stdout else ''
  if process.wait():
    sys.exit(f'{words[0]} failed with exit code {process.returncode}.')
  return output


def _tool(name: str) -> str:
  """A console script of the environment that runs this."""
  return str(pathlib.Path(sys.executable).parent / name)


def _say(title: str) -> None:
  print(f'\n== {title}', flush=True)


if __name__ == '__main__':
  sys.exit(main())
