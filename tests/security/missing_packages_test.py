"""Whatever an extra brings may be missing: one line says which extra."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

from gdp_grappler import extras
from helpers import fresh

pytestmark = pytest.mark.e2e

_PROGRAM = '''
import sys
sys.modules[{module!r}] = None
sys.argv = {argv!r}
from {program} import {run}
sys.exit({run}())
'''
_PLACERS = {
    'pymetis': 'metis', 'scotchpy': 'scotch', 'mtkahypar': 'mt_kahypar',
    'highspy': 'm_sct_published'
}


def _said(folder: pathlib.Path, module: str, program: str, run: str, *arguments:
          str) -> str:
  """What it writes to its standard error; it ends with 2."""
  done = subprocess.run([
      sys.executable, '-c',
      _PROGRAM.format(module=module, program=program, run=run,
                      argv=[program, *arguments])
  ], env=fresh.environment(), cwd=folder, text=True, capture_output=True,
                        timeout=120, check=False)
  assert done.returncode == 2, done.stderr
  return done.stderr


def _check(said: str, module: str, extra: str) -> None:
  # What it was doing, and then one line; no traceback.
  *before, line = said.splitlines()
  program = line.partition(': error: ')[0]
  assert 'error' in line and len(before) <= 2, said
  assert all(
      l.startswith(f'{program}: ') and 'error' not in l for l in before), said
  assert extras.package(module) in line
  assert f"pip install 'gdp-grappler[{extra}]'" in line


@pytest.mark.parametrize('module', [*extras.TRAIN, 'pymetis'])
def test_gdp_train(tmp_path, module):
  said = _said(tmp_path, module, 'placer_model.bin.gdp_train', 'run',
               '--graph=g.pb', '--cluster=2xP100', '--model_dir=m')
  _check(said, module, 'metis' if module == 'pymetis' else 'train')


@pytest.mark.parametrize('module', extras.BENCH)
def test_gdp_bench(tmp_path, module):
  said = _said(tmp_path, module, 'placer_model.bin.gdp_bench', 'run',
               '--tasks=all', '--out_dir=o')
  _check(said, module, 'bench')


@pytest.mark.parametrize('module', _PLACERS)
def test_gdp_place(tmp_path, module):
  (tmp_path / 'g.json').write_text(
      json.dumps({
          'nodes': [{'name': f'n{i}', 'seconds': 1} for i in range(9)],
          'edges': [[f'n{i}', f'n{i + 1}', 10] for i in range(8)]
      }))
  said = _said(tmp_path, module, 'gdp_grappler.bin.gdp', 'main', 'place',
               'g.json', '--cluster=2xP100', f'--placer={_PLACERS[module]}',
               '--output=p.json')
  _check(said, module, 'metis' if module == 'pymetis' else 'baselines')


@pytest.mark.parametrize('module', ['tf_keras'])
def test_placers_that_learn(tmp_path, module):
  (tmp_path / 'g.json').write_text(
      json.dumps({'nodes': [{'name': 'n', 'seconds': 1}]}))
  said = _said(tmp_path, module, 'gdp_grappler.bin.gdp', 'main', 'place',
               'g.json', '--cluster=2xP100', '--placer=hdp', '--output=p.json')
  _check(said, module, 'train')
