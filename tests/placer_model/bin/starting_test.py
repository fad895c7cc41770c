import subprocess
import sys

import pytest


@pytest.mark.parametrize('program', ['gdp_bench', 'gdp_pretrain', 'gdp_train'])
def test_a_first_moment_that_is_interrupted_is_one_line(program):
  code = ('import importlib, os, signal, sys; '
          'from placer_model.bin import starting; '
          'stock = importlib.import_module; '
          'importlib.import_module = lambda name: '
          '(os.kill(os.getpid(), signal.SIGINT), stock(name)); '
          f'starting.{program}()')
  ended = subprocess.run([sys.executable, '-P', '-c', code], timeout=60,
                         capture_output=True, text=True, check=False)
  assert ended.returncode == 130
  assert (ended.stdout, ended.stderr) == ('', f'{program}: interrupted\n')
