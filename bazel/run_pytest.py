"""Runs pytest on the arguments, for Bazel's tests."""

import os
import sys

import pytest

if __name__ == '__main__':
  # Bazel counts "no test selected" (5) as a failure, and so do we.
  sys.exit(
      pytest.main([
          '-c', 'pyproject.toml', '--rootdir',
          os.getcwd(), '-m', 'not e2e', *sys.argv[1:]
      ]))
