"""What lies in the current folder is not executed, whatever it is called."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e

# Of the standard library, of what we need, and what Python itself looks for.
_MODULES = ('random', 'json', 'pickle', 'tempfile', 'typing', 'numpy',
            'tensorflow', 'keras', 'absl', 'rich', 'pymetis', 'scotchpy',
            'gdp_grappler', 'placer_model', 'sitecustomize', 'usercustomize')
# As the console scripts do.
_PROGRAM = '''
import sys
sys.argv = {argv!r}
from {program} import {run}
sys.exit({run}())
'''
_GRAPH = str(pathlib.Path(__file__).parents[1] / 'testdata/dense_train_step.pb')


@pytest.fixture(name='folder')
def _folder(tmp_path) -> pathlib.Path:
  """A current folder with a graph and with modules that leave a mark."""
  for name in _MODULES:
    (tmp_path / f'{name}.py'
    ).write_text(f'open("owned", "a").write("{name} ")\nraise SystemExit(9)\n')
  (tmp_path / 'g.json').write_text(
      json.dumps({
          'nodes': [{'name': f'n{i}', 'seconds': 1} for i in range(9)],
          'edges': [[f'n{i}', f'n{i + 1}', 10] for i in range(8)]
      }))
  return tmp_path


@pytest.mark.parametrize(
    'program, run, arguments',
    [
        ('gdp_grappler.bin.gdp', 'main',
         ('place', 'g.json', '--cluster=2xP100', '--placer=scotch',
          '--output=p.json')),
        ('gdp_grappler.bin.gdp', 'main',
         ('profile', _GRAPH, '--output=pr.json')),
        ('placer_model.bin.gdp_bench', 'run',
         ('--tasks=g.json@2xP100', '--placers=metis', '--out_dir=o')),
        # Its child tries the policy.
        ('placer_model.bin.gdp_train', 'run',
         ('--graph=g.json', '--cluster=2xP100', '--reward=simulated',
          '--model_dir=m', '--iterations=0', '--time_budget_s=1')),
    ])
def test_programs_and_their_children(folder, program, run, arguments):
  done = subprocess.run([
      sys.executable, '-P', '-c',
      _PROGRAM.format(program=program, run=run, argv=[program, *arguments])
  ], cwd=folder, env=fresh.environment(), text=True, capture_output=True,
                        timeout=600, check=False)
  owned = folder / 'owned'
  assert not owned.exists(), owned.read_text()
  assert done.returncode == 0, done.stderr
