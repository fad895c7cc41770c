"""setup.py refuses, in one line, a TensorFlow that it cannot build against."""

import pathlib
import subprocess
import sys

import pytest

_TOP = pathlib.Path(__file__).parents[2]
_MISSING = 'metadata.PackageNotFoundError("tensorflow")'


@pytest.mark.parametrize('answer, message', [
    ('lambda name: "2.20.0"', 'TensorFlow 2.20.0 is installed'),
    (f'mock.Mock(side_effect={_MISSING})', 'and there is none'),
])
def test_refuses_another_tensorflow(answer, message):
  code = ('import runpy, sys\n'
          'from importlib import metadata\n'
          'from unittest import mock\n'
          f'metadata.version = {answer}\n'
          'sys.argv = ["setup.py", "build_native"]\n'
          'runpy.run_path("setup.py", run_name="__main__")\n')
  run = subprocess.run([sys.executable, '-c', code], cwd=_TOP,
                       capture_output=True, text=True, check=False)
  assert run.returncode == 1
  last = run.stderr.strip().split('\n')[-1]
  assert message in last
  assert "pip install 'tensorflow>=2.21,<2.22'" in last
  assert 'Traceback' not in run.stderr
