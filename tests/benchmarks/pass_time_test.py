import json

import pytest

from helpers import benchmarks

pytestmark = pytest.mark.e2e


def test_the_search_is_clocked(tmp_path):
  """The function that was clocked had been renamed; the program failed."""
  done = benchmarks.run('pass_time', '--layers', '20', '--json', '--quiet',
                        folder=tmp_path)
  assert done.code == 0, done.stderr
  row, = json.loads(done.stdout)
  assert 0 < row['refining_cpu_s'] < row['refining_cpu_s'] + row['other_cpu_s']
  assert 0 < row['cached_s'] < row['first_s'] and row['ops'] > 100
