"""A script for the shell, or what to install."""

import importlib
import subprocess
import sys

import pytest

from gdp_grappler.bin import gdp


def test_bash_understands_it(capsys):
  pytest.importorskip('shtab')
  assert gdp.run(['completion', 'bash']) == 0
  script = capsys.readouterr().out
  subprocess.run(['bash', '-n'], input=script, text=True, check=True)
  assert '--time_budget_s' in script and 'glossary' in script


@pytest.mark.parametrize('shell', ['zsh', 'tcsh'])
def test_other_shells(shell, capsys):
  pytest.importorskip('shtab')
  assert gdp.run(['completion', shell]) == 0
  assert 'simulate' in capsys.readouterr().out


def test_says_what_to_install(monkeypatch, capsys):
  monkeypatch.setitem(sys.modules, 'shtab', None)
  importlib.invalidate_caches()
  assert gdp.run(['completion', 'bash']) == 2
  assert "pip install 'gdp-grappler[completion]'" in capsys.readouterr().err
