"""The papers' tables: what stands beside what, and that a run goes on."""

from __future__ import annotations

import importlib
import pathlib

import pytest

from helpers import bench_results
from helpers import benchmarks

_CELL = bench_results.cell
_CURVE = [[1, .5, 3.], [40, 90., 1.2]]


@pytest.fixture(name='paper', scope='module')
def _paper():
  """Programs of `benchmarks` are installed nowhere."""
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(pathlib.Path(__file__).parents[2]))
    yield importlib.import_module('benchmarks.paper.page')


@pytest.fixture(name='parts', scope='module')
def _parts(paper):
  return paper.parts_lib


def _tasks():
  return [
      bench_results.task('rnnlm-2@2xP100', human_expert=_CELL(1.5),
                         hdp=_CELL(1.2, seconds=120., curve=_CURVE),
                         gdp_paper=_CELL(1.,
                                         seconds=9.), gdp=_CELL(.5,
                                                                seconds=3.)),
      bench_results.task('mine@2xP100', human_expert=_CELL(2.), hdp=_CELL(None),
                         gdp_paper=_CELL(1., seconds=9.),
                         gdp=bench_results.failure('no luck'))
  ]


def _column(table, title):
  return [row[table[0].index(title)] for row in table[1:]]


def test_ratios_stand_beside_published_ones_and_means_have_both(paper, parts):
  table = paper.table(parts.PARTS['table1'], _tasks())
  assert _column(table,
                 'task') == ['rnnlm-2@2xP100', 'mine@2xP100', 'geometric mean']
  assert _column(table, 'human / GDP-one') == ['1.500x', '2.000x', '1.732x (2)']
  after = table[0].index('human / GDP-one') + 1
  assert [row[after] for row in table] == [
      'published', f'{.192 / .173:.3f}x', '-', f'{.192 / .173:.3f}x (1)'
  ]
  assert _column(table, 'HDP / GDP-one')[1:] == ['-', '1.200x (1)']
  # Seconds until the best placement, not all that a search took.
  assert _column(table, 'search: HDP / GDP-one')[0] == '10.000x'
  assert _column(table, 'gdp')[:2] == ['0.5 s', 'failed']


def test_what_failed_is_told_below(paper, parts):
  text = paper.section(parts.PARTS['table1'], _tasks(), 'make paper', 7.)
  assert text.startswith("## GDP's table 1: ")
  assert '* mine@2xP100, gdp: no luck' in text
  assert '`make paper`. Each search had 7 s.' in text


def test_a_curve_has_a_column_per_seconds(paper, parts):
  part, found = parts.PARTS['seconds'], {1.: _tasks(), 10.: _tasks()[:1]}
  head, human, hdp, *_ = paper.curve_table(part, found)
  assert head == ('placer / gdp', '1 s', '10 s')
  assert human == ('human_expert', '3.000x (1)', '3.000x (1)')
  assert hdp == ('hdp', '2.400x (1)', '2.400x (1)')
  figure = paper.drawn(part, {s: tasks[:1] for s, tasks in found.items()})
  panel, = figure.axes
  assert panel.get_title() == 'rnnlm-2@2xP100'
  assert {line.get_label() for line in panel.lines
         } == {'human_expert', 'hdp', 'gdp'}


def test_parts_name_placers_and_tasks_that_there_are(parts):
  from gdp_grappler.placers import registry
  from placer_model.benchmark import tasks
  known = {task.name for task in tasks.PAPER_TASKS}
  for part in parts.PARTS.values():
    assert set(part.placers) <= set(registry.names())
    assert set(part.tasks) <= known
    for ratio in part.ratios:
      assert {ratio.other, ratio.ours} <= set(part.placers)
      assert {task for task, _ in ratio.published} <= known


@pytest.mark.e2e
def test_a_part_is_made(tmp_path):
  finished = benchmarks.run('paper', 'hdp', '--tiny', '--seconds=.5',
                            '--tasks=rnnlm-2', '--work_dir=work',
                            '--out_dir=out', folder=tmp_path)
  assert finished.code == 0, finished.stderr
  page = (tmp_path / 'out/hdp.md').read_text()
  assert finished.stdout.strip() in page and '@tiny' in page
  assert '| rnnlm-2@tiny@2xK40 | ' in page and '[1/6]' in finished.stderr
  # What `gdp_bench` finds again.
  assert len(list((tmp_path / 'work/cells').glob('*/*.json'))) == 6


@pytest.mark.e2e
def test_bad_input_is_one_line(tmp_path):
  refused = {
      'no part "table9"': ('table9',),
      'cannot have 0 s': ('hdp', '--seconds=0'),
      '--tasks=vgg leaves none': ('hdp', '--tasks=vgg'),
      '--curve=a: give seconds': ('seconds', '--curve=a'),
  }
  finished = benchmarks.run_all('paper.__main__', list(refused.values()),
                                tmp_path)
  for why, ended in zip(refused, finished):
    assert ended.code == 2
    assert ended.stderr.splitlines()[-1].startswith('paper: error: ')
    assert why in ended.stderr
  assert not (tmp_path / 'build').exists()


@pytest.mark.parametrize('flag, said', [
    ([], 'No op went to another kind of device'),
    (['--may_round'], 'Ops might go where they are rounded otherwise'),
])
def test_a_page_says_whether_ops_might_round(paper, flag, said):
  del paper
  program = importlib.import_module('benchmarks.paper.__main__')
  assert said in program._head(program._parse(['table1', *flag]))
