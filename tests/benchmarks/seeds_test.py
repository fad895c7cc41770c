"""Runs of gdp_bench with several seeds: the program that puts them together."""

import json
import pathlib
import types

import pytest

from helpers import benchmarks
from placer_model.benchmark import records


@pytest.fixture(name='program')
def _program():
  return benchmarks.module('seeds')


def _cell(seed, step_s, ordered_s):
  return {
      'step_time_s': step_s, 'ordered_step_time_s': ordered_s,
      'settings': {'seed': seed}
  }


@pytest.fixture(name='runs')
def _runs(program, monkeypatch):
  """Two tasks, one large; ours takes 1 s, the other 2 and 8, or 2 and 2."""
  found = {}
  for seed, other_s in ((0, 8.), (1, 2.)):
    found[pathlib.Path(str(seed)) / records.RESULTS] = {
        'tasks': [{
            'name': 'small', 'num_accelerators': 7, 'num_ops': 30_000, 'cells':
                {'other': _cell(seed, 2., 1.), 'ours': _cell(seed, 1., .5)}
        }, {
            'name': 'big', 'num_accelerators': 8, 'num_ops': 5, 'cells': {
                'other': _cell(seed, other_s, 1.), 'ours': _cell(seed, 1., 1.)
            }
        }]
    }
  monkeypatch.setattr(records, 'read_results', found.__getitem__)
  return found


def test_means_and_their_spread(program, runs):
  folders = [path.parent for path in runs]
  cells = program._table(types.SimpleNamespace(folders=folders,
                                               ours='ours')).cells
  found = {row[0]: row[1:] for row in cells}
  assert found['small'] == ['2000.0 ms | 1000.0 ms', '1000.0 ms | 500.0 ms']
  assert found['big'] == ['4000.0 ms | 1000.0 ms', '1000.0 ms | 1000.0 ms']
  # Of 2 and 8, or 2 and 2; in order of 2 and 1.
  other = {name: row[0] for name, row in found.items()}
  assert other['over ours'] == ('2.828 (2.000-4.000) | 1.414 (1.414-1.414)')
  assert other['large'] == '4.000 (2.000-8.000) | 1.000 (1.000-1.000)'
  assert other['others'] == '2.000 (2.000-2.000) | 2.000 (2.000-2.000)'
  # By ours with edges, which takes 0.5 and 1 s.
  assert other['over ours with edges'] == '4.000 (2.828-5.657)'


def test_one_seed_has_no_spread(program, runs):
  cells = program._table(
      types.SimpleNamespace(folders=[next(iter(runs)).parent],
                            ours='ours')).cells
  assert dict(row[:2] for row in cells)['over ours'] == '4.000 | 1.414'


def test_a_page_gets_cells_that_are_escaped(program, runs, tmp_path):
  page = tmp_path / 'page.md'
  page.write_text('<!-- Seeds; made by ``. -->\n<!-- End of Seeds. -->\n',
                  encoding='utf-8')
  folders = [str(path.parent) for path in runs]
  assert program.main(['--ours=ours', '--quiet', f'--page={page}',
                       *folders]) == 0
  assert ('| small | 2000.0 ms \\| 1000.0 ms | 1000.0 ms \\| 500.0 ms |'
          in page.read_text(encoding='utf-8'))


def test_runs_of_something_else_are_refused(program, runs, capsys):
  assert program.main(['--ours=nobody', '--quiet', '0', '1']) == 2
  assert 'there are other, ours' in capsys.readouterr().err
  list(runs.values())[1]['tasks'].pop()
  assert program.main(['--ours=ours', '--quiet', '0', '1']) == 2
  assert '1 has not the tasks and placers of 0' in capsys.readouterr().err
  assert program.main(['--ours=ours', '--quiet', '0', '0']) == 2
  assert 'have the same seeds' in capsys.readouterr().err
  tasks = list(runs.values())[0]['tasks']
  other = tasks[1]['cells'].pop('other')
  assert program.main(['--ours=ours', '--quiet', '0']) == 2
  assert 'big has not the placers of small' in capsys.readouterr().err
  tasks[1]['cells'] = {'other': other, 'ours': tasks[1]['cells']['ours']}
  for nothing in None, 0., float('inf'):
    tasks[0]['cells']['ours']['step_time_s'] = nothing
    assert program.main(['--ours=ours', '--quiet', '0']) == 2
    assert 'small has no steps of ours' in capsys.readouterr().err


def test_folders_of_gdp_bench_are_read(program, capsys):
  folder = pathlib.Path(__file__).parents[2] / 'docs/results/learned'
  assert program.main(['--json', '--quiet', '--ours=human_expert',
                       str(folder)]) == 0
  rows = json.loads(capsys.readouterr().out)
  assert {row['placer'] for row in rows} >= {'human_expert', 'hdp'}
  assert all(0 < row['ordered_step_time_s'] for row in rows)
