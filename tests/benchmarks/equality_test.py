import json
import pathlib

import pytest

from helpers import benchmarks
from helpers import fresh
from helpers import warm

pytestmark = pytest.mark.e2e
# Of kinds that no other test has: two optimizers, steps in a loop, a gradient
# of a gradient under tf_keras, averages in a session.
_PROGRAMS = ('adversaries', 'steps_in_a_loop', 'own_step:tf_keras',
             'session_averages')
_REPOSITORY = pathlib.Path(__file__).parents[2]
# Programs of `benchmarks` are installed nowhere.
_MADE_UP = f'''{warm.MARK}import sys
sys.path.append({str(_REPOSITORY)!r})
import contextlib
import io
import json
from unittest import mock
from benchmarks.equality import __main__ as equality
from benchmarks.equality import base
from benchmarks.equality import runner

def differ(odd):
  numbers = [[1., 2.], [1., 2.], [1., 2.]]  # Unplaced, unplaced, placed.
  numbers[odd] = [float('nan'), 2.]
  runs = iter(numbers)
  base.PROGRAMS['own'] = base.Program(lambda: (next(runs), []))
  found = runner.compare('own', False)
  return found.noise if odd == 1 else found.losses

def told(ends, *names):
  text = io.StringIO()
  with (mock.patch.object(equality.subprocess, 'run', side_effect=ends),
        contextlib.redirect_stdout(text)):
    code = equality.main(['--json', *names])
  return code, json.loads(text.getvalue())

row = {{'placed_ops': 1, 'devices': 2, 'moved_variables': 0, 'losses': 0.,
       'weights': 0., 'noise': 0.}}
results = {{
    key: told([mock.Mock(returncode=0, stdout=json.dumps(
        row | {{key: float('nan')}}))], 'adversaries')
    for key in ('losses', 'weights')
}}
hangs = equality.subprocess.TimeoutExpired('program', 1)
results['hangs'] = told(hangs, 'adversaries', 'steps_in_a_loop')
said = io.StringIO()
try:
  with contextlib.redirect_stderr(said):
    equality.main(['nothing'])
except SystemExit as end:
  results['refused'] = end.code, said.getvalue()
results['nan'] = [differ(odd) for odd in range(3)]
print(json.dumps(results))
'''


@pytest.fixture(name='made_up', scope='module')
def _made_up():
  """What becomes of numbers and programs that are none of the benchmark's."""
  return fresh.run_code(_MADE_UP).results


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


def test_a_name_of_no_program_is_refused(made_up):
  code, said = made_up['refused']
  assert code == 2
  assert 'no program is called nothing' in said


@pytest.mark.parametrize('number', range(3))
def test_nan_on_one_side_only_is_a_difference(made_up, number):
  assert made_up['nan'][number] == float('inf')


@pytest.mark.parametrize('key', ['losses', 'weights'])
def test_nan_breaks_the_bound(made_up, key):
  code, (row,) = made_up[key]
  assert code == 1 and row['verdict'] == 'differs'


def test_a_program_that_hangs_has_a_row(made_up):
  code, rows = made_up['hangs']
  assert code == 1
  assert [row['program'] for row in rows] == ['adversaries', 'steps_in_a_loop']
  assert all(row['verdict'].startswith('hangs') for row in rows)
