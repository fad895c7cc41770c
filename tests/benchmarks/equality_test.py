import json
import pathlib

import pytest

from helpers import benchmarks
from helpers import fresh

pytestmark = pytest.mark.e2e
# Of kinds that no other test has: two optimizers, steps in a loop, a gradient
# of a gradient under tf_keras, averages in a session.
_PROGRAMS = ('adversaries', 'steps_in_a_loop', 'own_step:tf_keras',
             'session_averages')
_REPOSITORY = pathlib.Path(__file__).parents[2]
# Programs of `benchmarks` are installed nowhere.
_IMPORTS = f'''
import sys
sys.path.append({str(_REPOSITORY)!r})
import json
from unittest import mock
from benchmarks.equality import __main__ as equality
from benchmarks.equality import base
from benchmarks.equality import runner
'''


@pytest.fixture(scope='module')
def rows(tmp_path_factory):
  folder = tmp_path_factory.mktemp('equality')
  finished = benchmarks.run('equality', '--json', *_PROGRAMS, folder=folder)
  assert finished.code == 0, finished.stdout + finished.stderr
  return {row['program']: row for row in json.loads(finished.stdout)}


@pytest.mark.parametrize('program', _PROGRAMS)
def test_placed_programs_give_the_same_numbers(rows, program):
  row = rows[program]
  assert row['verdict'] == ''
  assert row['losses'] == row['weights'] == 0.
  assert row['devices'] > 1 and row['placed_ops'] > 0


def test_variables_of_a_fit_have_moved(rows):
  assert rows['own_step:tf_keras']['moved_variables'] > 0


def test_a_name_of_no_program_is_refused(tmp_path):
  finished = benchmarks.run('equality', 'nothing', folder=tmp_path)
  assert finished.code == 2
  assert 'no program is called nothing' in finished.stderr


@pytest.mark.parametrize('placed', [False, True])
def test_nan_on_one_side_only_is_a_difference(placed):
  # Three runs: unplaced, unplaced, placed.
  numbers = [[1., 2.], [1., 2.], [1., 2.]]
  numbers[2 if placed else 0] = [float('nan'), 2.]
  finished = fresh.run_code(f'''{_IMPORTS}
from numpy import nan
numbers = iter({numbers})
base.PROGRAMS['own'] = base.Program(lambda: (next(numbers), []))
print(json.dumps(runner.compare('own', False).losses))
''')
  assert finished.results == float('inf')


@pytest.mark.parametrize('key', ['losses', 'weights'])
def test_nan_breaks_the_bound(key):
  finished = fresh.run_code(f'''{_IMPORTS}
row = {{'placed_ops': 1, 'devices': 2, 'moved_variables': 0, 'losses': 0.,
       'weights': 0., 'noise': 0., {key!r}: float('nan')}}
done = mock.Mock(returncode=0, stdout=json.dumps(row))
with mock.patch.object(equality.subprocess, 'run', return_value=done):
  assert equality.main(['--json', 'adversaries']) == 1
''')
  assert finished.code == 0, finished.stderr
  row, = json.loads(finished.stdout)
  assert row['verdict'] == 'differs'


def test_a_program_that_hangs_has_a_row():
  finished = fresh.run_code(f'''{_IMPORTS}
hangs = equality.subprocess.TimeoutExpired('program', 1)
with mock.patch.object(equality.subprocess, 'run', side_effect=hangs):
  assert equality.main(['--json', 'adversaries', 'steps_in_a_loop']) == 1
''')
  assert finished.code == 0, finished.stderr
  rows = json.loads(finished.stdout)
  assert [row['program'] for row in rows] == ['adversaries', 'steps_in_a_loop']
  assert all(row['verdict'].startswith('hangs') for row in rows)
