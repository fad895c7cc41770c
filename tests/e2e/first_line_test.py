"""The first line of every program comes before anything large is imported."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from helpers import fresh
from helpers import warm

pytestmark = pytest.mark.e2e
_ROOT = pathlib.Path(__file__).parents[2]

# A program that ends at the first write to standard error, and prints the large
# modules that it has imported until then.
_WATCHED = """
import os, sys

class First:
  closed, encoding = False, 'utf-8'
  def isatty(self):
    return False
  def fileno(self):
    raise OSError
  def flush(self):
    pass
  def write(self, text):
    large = [m for m in ('tensorflow', 'numpy', 'rich') if m in sys.modules]
    os.write(1, f'{large} {text}'.encode())
    os._exit(0)

sys.stderr = First()
import importlib
module, _, function = sys.argv[1].partition(':')
sys.argv[:2] = [module]
getattr(importlib.import_module(module), function)()
"""
_GDP = 'gdp_grappler.bin.gdp:main'
_PRICED = '--cluster=2xP100', '--batch_size=4'
_PROGRAMS = {
    'place': (_GDP, 'place', 'net.pb', *_PRICED, '--output=plan.json'),
    'simulate': (_GDP, 'simulate', 'net.pb', '--plan=plan.json', '--json'),
    'explain': (_GDP, 'explain', 'net.pb', '--plan=plan.json', 'x'),
    'diff': (_GDP, 'diff', 'net.pb', 'a.json', 'b.json'),
    'profile': (_GDP, 'profile', 'net.pb', '--output=profile.json'),
    'cluster': (_GDP, 'cluster', '2xP100', '--json'),
    'verify': (_GDP, 'verify'),
    'doctor': (_GDP, 'doctor'),
    'gdp_train': ('placer_model.bin.gdp_train:run', '--graph=net.pb',
                  '--cluster=2xP100', '--model_dir=model'),
    'gdp_bench': ('placer_model.bin.gdp_bench:run', '--tasks=net.pb@2xP100',
                  '--out_dir=out', '--json'),
    'gdp_pretrain': ('placer_model.bin.gdp_pretrain:run', '--model_dir=moves'),
}


def _started(*arguments, program=_WATCHED, **options):
  return subprocess.run([sys.executable, '-c', program, *arguments],
                        env=fresh.environment(PYTHONPATH=os.pathsep.join(
                            p for p in sys.path if p)), capture_output=True,
                        text=True, check=False, timeout=100, **options)


@pytest.mark.parametrize('name', _PROGRAMS)
def test_the_first_line_waits_for_no_import(tmp_path, name):
  done = _started(*_PROGRAMS[name], cwd=tmp_path)
  program = name if name.startswith('gdp_') else 'gdp'
  assert done.stdout.startswith(f'[] {program}: '), done.stdout
  assert 'error' not in done.stdout and done.stdout.endswith('\n')


def test_benchmarks_speak_before_they_import(tmp_path):
  # The program ends when it imports this file.
  (tmp_path / 'numpy.py').write_text('raise SystemExit("imported")')
  path = os.pathsep.join(map(str, (tmp_path, _ROOT)))
  with warm.cold():
    done = subprocess.run([sys.executable, '-m', 'benchmarks.levers'],
                          check=False, env=fresh.environment(PYTHONPATH=path),
                          capture_output=True, text=True, timeout=100)
  first, *_, last = done.stderr.splitlines()
  assert first.startswith('benchmarks: ') and last == 'imported'


@pytest.mark.parametrize('arguments', [['cluster', '2xP100'], ['glossary']])
def test_quiet_leaves_the_result_alone(arguments):
  program = 'from gdp_grappler.bin import gdp; gdp.main()'
  done = _started(*arguments, '--quiet', program=program)
  assert done.stdout and not done.stderr
