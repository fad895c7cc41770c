"""Random placements of many kinds of graphs change no results.

One fresh process runs each graph twice: unplaced, and placed at random on three
logical CPU devices. The pass places functions and sessions. Graphs of
TensorFlow 1 are also placed offline, as a GraphDef. Results have to be equal to
the last bit.
"""

import json
import pathlib
import subprocess
import sys

import pytest

from gdp_grappler import native
from helpers import fresh
from helpers import real_graphs

_HELPERS = pathlib.Path(fresh.__file__).parent
pytestmark = pytest.mark.e2e


@pytest.fixture(scope='module')
def verdicts(tmp_path_factory):
  """Returns the error or '' of each graph that ran before a crash, if any."""
  path = tmp_path_factory.mktemp('legality') / 'verdicts.jsonl'
  environment = fresh.environment()
  environment.setdefault('TF_PLUGGABLE_DEVICE_LIBRARY_PATH',
                         str(native.LIB_DIR / 'libgdp_loader.so'))
  run = subprocess.run(
      [sys.executable,
       str(_HELPERS / 'legality_runner.py'),
       str(path)], env=environment, capture_output=True, text=True, timeout=280)
  result = {}
  for line in path.read_text().splitlines():
    name, verdict = json.loads(line)
    result[name] = verdict
  result['crash'] = run.stderr[-2000:] if run.returncode else ''
  return result


@pytest.mark.parametrize('name',
                         [*real_graphs.FUNCTIONS, *real_graphs.V1_GRAPHS])
def test_placed_at_random_gives_the_same_results(name, verdicts):
  assert name in verdicts, verdicts['crash']
  assert verdicts[name] == ''
