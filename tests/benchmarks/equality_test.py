import json

import pytest

from helpers import benchmarks

pytestmark = pytest.mark.e2e
# Of kinds that no other test has: two optimizers, steps in a loop, a gradient
# of a gradient under tf_keras, averages in a session.
_PROGRAMS = ('adversaries', 'steps_in_a_loop', 'own_step:tf_keras',
             'session_averages')


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
