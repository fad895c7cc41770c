"""Tables against golden files, and what they say."""

import csv
import io
import pathlib

import pytest

from helpers import bench_results
from placer_model.benchmark import tables

_GOLDEN = pathlib.Path(__file__).parents[2] / 'testdata' / 'benchmark'
_CELL = bench_results.cell


def _tasks():
  search = [[1, .5, 3.], [40, 90., 1.2]]
  return [
      bench_results.task('rnnlm-2@2xP100', cpu_only=_CELL(5.),
                         gpu_only=_CELL(None), human_expert=_CELL(1.5),
                         metis=_CELL(1.25), scotch=_CELL(1.25),
                         best_of=_CELL(1.25, won_by='metis'),
                         gdp_policy=_CELL(1., seconds=3.),
                         hdp=_CELL(1.2, seconds=120., curve=search)),
      bench_results.task('gnmt-2@2xP100', human_expert=_CELL(2.),
                         metis=_CELL(None), gdp_policy=bench_results.failure(),
                         hdp=_CELL(None)),
      bench_results.task('nmt-2@2xK40', cpu_only=_CELL(9.),
                         gpu_only=_CELL(None), human_expert=_CELL(3.),
                         scotch=_CELL(4.), min_cut=_CELL(6.), hdp=_CELL(2.),
                         local_search=_CELL(1.)),
      bench_results.task('lost@2xP100', metis=bench_results.failure('no graph'),
                         random=bench_results.failure('no graph'))
  ]


@pytest.mark.parametrize('name, make', [('all', tables.everything),
                                        ('means', tables.means)])
def test_golden(name, make):
  table = make(_tasks())
  assert table.to_markdown() == (_GOLDEN / f'{name}.md').read_text()
  assert table.to_csv() == (_GOLDEN / f'{name}.csv').read_text()


def _column(table, head):
  return [row[table.head.index(head)] for row in table.numbers]


def test_equals_share_the_lead():
  table = tables.means(_tasks())
  leads = dict(zip(_column(table, 'placer'), _column(table, 'best on')))
  assert leads['gdp_policy'] == 1 and leads['local_search'] == 1
  assert leads['metis'] == 0


def test_the_median_of_two_is_between_them():
  """It was the larger of the two."""
  tasks = [
      bench_results.task('a@2xP100', metis=_CELL(1., seconds=2.)),
      bench_results.task('b@2xP100', metis=_CELL(1., seconds=5.))
  ]
  assert _column(tables.means(tasks), 'median seconds') == [3.5]


def test_csv_has_the_number_of_tasks_of_each_mean():
  """Only Markdown had it."""
  table = tables.means(_tasks())
  of = dict(zip(_column(table, 'placer'), _column(table, 'tasks with HDP')))
  assert (of['metis'], of['scotch'], of['random']) == (1, 2, 0)
  assert 'tasks with HDP' in table.to_csv()
  assert 'tasks with HDP' not in table.to_markdown()


def test_no_task_says_so():
  assert tables.everything([]).to_markdown().startswith('None of the tasks')
  assert tables.everything([]).to_csv().count('\n') == 1


def test_columns_have_names_of_their_own():
  for make in (tables.everything, tables.means):
    head = make(_tasks()).head
    assert len(set(head)) == len(head)


def test_bars_in_names_do_not_break_rows():
  table = tables.Table(('a',), (('x|y',),), (('x|y',),))
  assert table.to_markdown().splitlines()[-1] == r'| x\|y |'


def test_csv_has_bare_numbers():
  rows = list(csv.DictReader(io.StringIO(tables.everything(_tasks()).to_csv())))
  first = rows[0]
  assert (first['task'], first['placer']) == ('rnnlm-2@2xP100', 'cpu_only')
  assert float(first['FIFO step']) == 5.
  assert float(first['cut bytes']) == 3 << 20
  assert rows[1]['FIFO step'] == '' and rows[1]['status'] == 'oom'
  assert float(rows[1]['missing memory']) == 3 << 30
