"""Runs pytest on the arguments, for Bazel's tests."""

import os
import sys

import pytest

if __name__ == '__main__':
  # "No test selected" (exit code 5) is a failure, as in Bazel.
  sys.exit(
      pytest.main([
          '-c', 'pyproject.toml', '--rootdir',
          os.getcwd(), '-m', 'not e2e', *sys.argv[1:]
      ]))
