"""The papers' tables: what stands beside what, and that a run goes on."""

from __future__ import annotations

import dataclasses
import os
import types

import pytest
import rich.console

from gdp_grappler import environment
from gdp_grappler import errors
from helpers import bench_results
from helpers import benchmarks
from placer_model import config
from placer_model import run_folder
from placer_model.benchmark import settings as settings_lib

_CELL = bench_results.cell
_CURVE = [[1, .5, 3.], [40, 90., 1.2], [50, 100., 1.195]]
_OURS = [[1, 1., 2.], [2, 3., 1.2], [4, 9., 1.]]

_REFUSED = {
    'no part "table9"': ('table9',),
    'cannot have 0 s': ('hdp', '--seconds=0'),
    '--tasks=vgg leaves none': ('hdp', '--tasks=vgg'),
    '--seeds=0: give at least 1': ('hdp', '--seeds=0'),
    'no graph of another family than gnmt-2@2xP100':
        ('figure2', '--tasks=gnmt'),
}


@pytest.fixture(name='paper', scope='module')
def _paper():
  """Programs of `benchmarks` are installed nowhere."""
  return types.SimpleNamespace(
      **{
          name: benchmarks.module(f'paper.{name}')
          for name in ('page', 'parts', 'columns', 'cells', 'batches',
                       '__main__')
      })


def _tasks(hdp=1.2):
  return [
      bench_results.task('rnnlm-2@2xP100', human_expert=_CELL(1.5),
                         hdp=_CELL(hdp, seconds=120., curve=_CURVE),
                         gdp_paper=_CELL(1., seconds=9.,
                                         curve=_OURS), gdp=_CELL(.5)),
      bench_results.task('mine@2xP100', human_expert=_CELL(2.), hdp=_CELL(None),
                         gdp_paper=_CELL(1., seconds=9.),
                         gdp=bench_results.failure('no luck'))
  ]


def _column(table, title):
  return [row[table[0].index(title)] for row in table[1:]]


def test_ratios_stand_beside_published_ones_and_means_have_both(paper):
  part = paper.parts.PARTS['table1']
  table = paper.page.ratios(part, [_tasks()])
  assert _column(table,
                 'task') == ['rnnlm-2@2xP100', 'mine@2xP100', 'geometric mean']
  assert _column(table, 'human / GDP-one') == ['1.500x', '2.000x', '1.732x (2)']
  after = table[0].index('human / GDP-one') + 1
  assert [row[after] for row in table] == [
      'published', f'{.192 / .173:.3f}x', '-', f'{.192 / .173:.3f}x (1)'
  ]
  assert _column(table, 'HDP / GDP-one')[1:] == ['-', '1.200x (1)']
  assert _column(paper.page.steps(part, [_tasks()]),
                 'gdp') == ['0.5 s', 'failed']


def test_a_search_lasts_until_it_is_near_its_best(paper):
  part = paper.parts.PARTS['table1']
  found = paper.page.searches(part, [_tasks()])
  # HDP's last half a percent took ten seconds more.
  assert _column(found, 'hdp') == ['90 s', '-']
  assert _column(found, 'gdp_paper') == ['9 s', '-']
  ratios = paper.page.ratios(part, [_tasks()])
  assert _column(ratios, 'search: HDP / GDP-one')[0] == '10.000x'
  assert _column(ratios,
                 "search until HDP's best: HDP / GDP-one")[0] == '30.000x'


def test_seeds_have_a_least_and_a_most(paper):
  part = paper.parts.PARTS['table1']
  found = [_tasks(1.2), _tasks(2.7)]
  assert _column(paper.page.steps(part, found),
                 'hdp') == ['1.8 s (1.2 to 2.7)', 'OOM +3.00 GiB']
  assert _column(paper.page.ratios(part, found), 'HDP / GDP-one') == [
      '1.800x (1.200x to 2.700x)', '-', '1.800x (1.200x to 2.700x) (1)'
  ]


def test_what_a_papers_text_says_stands_in_the_mean(paper):
  part = paper.parts.PARTS['figure3']
  tasks = [
      bench_results.task(
          'rnnlm-2@2xP100',
          **{'no attention': _CELL(3.), 'as many iterations': _CELL(2.)})
  ]
  table = paper.page.ratios(part, [tasks])
  after = table[0].index('no attention / all') + 1
  assert [row[after - 1] for row in table[1:]] == ['1.500x', '1.500x (1)']
  assert [row[after] for row in table[1:]] == ['-', '1.180x (its text)']


def test_what_failed_is_told_below(paper):
  text = paper.page.section(paper.parts.PARTS['table1'], [_tasks()] * 2,
                            'make paper', 7.)
  assert text.startswith("## GDP's table 1: ")
  assert text.count('* mine@2xP100, gdp: no luck') == 1
  assert '`make paper`. Each search had 7 s.' in text


def test_parts_name_placers_and_tasks_that_there_are(paper):
  from gdp_grappler.placers import registry
  from placer_model.benchmark import tasks
  known = {task.name for task in tasks.PAPER_TASKS}
  for part in paper.parts.PARTS.values():
    names = {column.name for column in part.columns}
    assert len(names) == len(part.columns)
    assert {c.placer for c in part.columns} - {''} <= set(registry.names())
    assert set(part.tasks) <= known and set(part.searches) <= names
    for ratio in part.ratios:
      assert {ratio.other, ratio.ours} <= names
      assert {task for task, _ in ratio.published} <= known
    for batch in filter(None, (column.batch for column in part.columns)):
      assert set(batch.tasks) <= set(part.tasks)
      assert batch.network in config.PRESETS
      # They say how many iterations a batch has of each graph.
      assert paper.batches.GDP_ONE in part.placers


def test_what_is_held_out_was_not_learned(paper):
  columns = paper.columns
  batch = columns.Batch(('rnnlm-2@2xP100', 'rnnlm-8@8xP100', 'gnmt-2@2xP100'),
                        columns.Scope.OTHERS)
  assert batch.members('rnnlm-2@2xP100') == ('gnmt-2@2xP100',)
  for task in paper.parts.PARTS['table1'].tasks:
    assert columns.family(task) in columns.FAMILIES
  for name in ('zero-shot', 'fine-tuned'):
    column, = (
        c for c in paper.parts.PARTS['figure2'].columns if c.name == name)
    assert column.batch.scope == columns.Scope.OTHERS


def test_some_tasks_of_a_part_are_those_of_its_batches(paper):
  part = paper.parts.PARTS['table2'].of(['gnmt-2@2xP100',
                                         'gnmt-8@8xP100']).tiny()
  assert part.tasks == ('gnmt-2@tiny@2xP100', 'gnmt-8@tiny@8xP100')
  batches = {c.name: c.batch.tasks for c in part.columns if c.batch}
  assert batches['batch of six'] == part.tasks[:1]
  assert batches['batch of fourteen'] == part.tasks


def _learned_by(paper, monkeypatch, tmp_path, of_tasks):
  """Batches that learn nothing, a batch, and what they were told to learn."""
  jobs = []

  def call(function, job, timeout_s):
    jobs.append(job)
    assert function == 'benchmarks.paper.batch_worker:learn' and timeout_s
    if job.policy:
      job.policy.mkdir(parents=True)
      (job.policy / 'policy.json').touch()
    return [{'status': 'ok', 'step_time_s': 1. * n} for n in job.iterations]

  monkeypatch.setattr(paper.batches.calls, 'call', call)
  return (paper.batches.Batches(tmp_path, settings_lib.Settings()),
          paper.columns.Batch(tuple(of_tasks)), jobs)


def _of_tasks(**evaluations):
  return {
      name: {
          'digest': name, 'cells': {
              'gdp_paper': {'status': 'infeasible', 'message': 'none fits'}
                           if count is None else {'evaluations': count}
          }
      } for name, count in evaluations.items()
  }


def test_batches_that_fewer_tasks_make_equal_are_one_column(paper):
  """Batches of six and of fourteen were two columns with the same figures."""
  whole = paper.parts.PARTS['table2']
  six = whole.of(whole.columns[1].batch.tasks)
  assert 'batch of fourteen' in {column.name for column in whole.columns}
  names = [column.name for column in six.columns]
  assert names[:3] == ['gdp_paper', 'batch of six', 'six, no superposition']
  assert not any('fourteen' in name for name in names)
  assert not any('fourteen' in ratio.title for ratio in six.ratios)
  assert whole.of(whole.tasks) == whole


def test_a_batch_has_as_many_iterations_as_gdp_one_and_is_learned_once(
    paper, monkeypatch, tmp_path):
  of_tasks = _of_tasks(rnnlm=2 * 48 + 3, gnmt=7 * 48, wavenet=None)
  batches, batch, jobs = _learned_by(paper, monkeypatch, tmp_path, of_tasks)
  records, policy = batches.learned(batch, 'gnmt', of_tasks, False)
  assert records['gnmt']['step_time_s'] == 7.
  assert jobs[0].iterations == (2, 7, 2) and jobs[0].policy is None
  assert batches.learned(batch, 'rnnlm', of_tasks, False)[0] == records
  assert len(jobs) == 1
  # The policy is learned again where it is wanted and not there, once.
  for _ in range(2):
    assert batches.learned(batch, 'rnnlm', of_tasks, True) == (records, policy)
  assert [job.policy for job in jobs] == [None, policy]
  other = _of_tasks(rnnlm=3 * 48, gnmt=7 * 48, wavenet=None)
  assert batches.learned(batch, 'gnmt', other, False)[1] != policy


def test_a_damaged_record_is_learned_again(paper, monkeypatch, tmp_path):
  of_tasks = _of_tasks(rnnlm=48)
  batches, batch, jobs = _learned_by(paper, monkeypatch, tmp_path, of_tasks)
  batches.learned(batch, 'rnnlm', of_tasks, False)
  record, = (tmp_path / 'batches').iterdir()
  record.write_text(record.read_text().replace('1.0', '0.5'))
  found, _ = batches.learned(batch, 'rnnlm', of_tasks, False)
  assert found['rnnlm']['step_time_s'] == 1. and len(jobs) == 2


def test_nobody_knows_the_iterations_if_gdp_one_placed_nothing(
    paper, monkeypatch, tmp_path):
  of_tasks = _of_tasks(rnnlm=None)
  batches, batch, _ = _learned_by(paper, monkeypatch, tmp_path, of_tasks)
  with pytest.raises(errors.GdpError, match='gdp_paper placed none of rnnlm'):
    batches.learned(batch, 'rnnlm', of_tasks, True)


def test_a_column_asks_the_policy_of_its_batch(paper, monkeypatch, tmp_path):
  """`zero-shot` is a cell of gdp_bench with GDP_POLICY, for that cell alone."""
  part = dataclasses.replace(
      paper.parts.PARTS['figure2'],
      columns=(*paper.columns.placers('gdp_paper'),
               paper.columns.Column(
                   'zero-shot', 'gdp_one_shot',
                   paper.columns.Batch(
                       ('a', 'b'), paper.columns.Scope.ALL))), tasks=('a', 'b'))
  policies = []

  def run(options, unused_console):
    policies.append(os.environ.get(environment.POLICY))
    return {
        'tasks': [
            bench_results.task(f'{name}@x', **{options.placers: _CELL(1.)})
            | {'name': name} for name in options.tasks.split(',')
        ]
    }

  monkeypatch.setattr(paper.cells.runner, 'run', run)
  monkeypatch.setattr(paper.batches.Batches, 'learned', lambda *unused:
                      ({}, tmp_path / 'policy'))
  monkeypatch.setenv(environment.POLICY, 'mine')
  found = paper.cells.of(
      part,
      paper.cells.Options(settings_lib.Settings(), tmp_path, '',
                          paper.__main__.rich.console.Console(quiet=True)))
  asked = str(tmp_path / 'policy')
  assert policies == ['mine', asked, asked]
  assert os.environ[environment.POLICY] == 'mine'
  assert [set(task['cells']) for task in found
         ] == [{'gdp_paper', 'zero-shot'}] * 2


def test_a_batch_that_dies_is_a_failed_cell(paper, monkeypatch, tmp_path):

  def dies(*unused, **unused_too):
    raise paper.batches.calls.CallError('killed by signal 9')

  def run(options, unused_console):
    return {
        'tasks': [
            bench_results.task('gnmt-2@2xP100', gdp_paper=_CELL(
                1., evaluations=96))
            | {'digest': '0'}
        ]
    }

  monkeypatch.setattr(paper.cells.runner, 'run', run)
  monkeypatch.setattr(paper.batches.calls, 'call', dies)
  part = paper.parts.PARTS['table2'].of(['gnmt-2@2xP100'])
  task, = paper.cells.of(
      part,
      paper.cells.Options(settings_lib.Settings(), tmp_path, '',
                          paper.__main__.rich.console.Console(quiet=True)))
  assert task['cells']['batch of six']['status'] == 'failed'
  assert 'gnmt-2@2xP100 cannot be learned: killed by signal 9' in (
      paper.page.section(part, [[task]], 'make paper', 1.))


@pytest.fixture(name='finished', scope='module')
def _finished(tmp_path_factory):
  """The folder of all runs, and how each ended; first that of a part."""
  folder = tmp_path_factory.mktemp('paper')
  runs = [('hdp', '--tiny', '--seconds=.5', '--tasks=rnnlm-2',
           '--work_dir=work', '--out_dir=out'), *_REFUSED.values()]
  return folder, benchmarks.run_all('paper.__main__', runs, folder,
                                    ['helpers.small_paper'])


@pytest.mark.e2e
def test_a_part_is_made(finished):
  folder, (made, *_) = finished
  assert made.code == 0, made.stderr
  page = (folder / 'out/hdp.md').read_text()
  assert made.stdout.strip() in page and '@tiny' in page
  assert '| rnnlm-2@tiny@2xK40 | ' in page and '[1/4]' in made.stderr
  # What `gdp_bench` finds again.
  assert len(list((folder / 'work/cells').glob('*/*.json'))) == 4


@pytest.mark.e2e
def test_one_policy_learns_all_graphs_of_a_batch(paper, monkeypatch, tmp_path):
  worker = benchmarks.module('paper.batch_worker')
  # Quick to trace.
  network = config.preset('paper').replace(hidden_units=32, graph_layers=0,
                                           transformer_layers=0,
                                           superposition=False)
  monkeypatch.setattr(config, 'preset', lambda name: network)
  exported = []
  monkeypatch.setattr(worker.export, 'export_policy',
                      lambda *arguments: exported.append(arguments))
  tasks = 'wavenet-2x18@tiny@2xP100', 'transformer-xl-2@tiny@4xP100'
  records = worker.learn(
      paper.batches.Job(tasks, (3, 2), 'paper', 7, False,
                        tmp_path / 'policies' / 'one'))
  assert [record['iterations'] for record in records] == [3, 2]
  assert [record['evaluations'] for record in records] == [3 * 48, 2 * 48]
  for record in records:
    assert record['status'] == 'ok'
    # The price of a step is no less than the step.
    assert 0 < record['step_time_s'] <= record['curve'][-1][2] * (1 + 1e-9)
  (placer, folder, metadata), = exported
  assert placer.config == network.replace(seed=7)
  assert folder == tmp_path / 'policies' / 'one' and folder.parent.is_dir()
  assert metadata == {'units': 'nested', 'graph': ', '.join(tasks), 'seed': 7}


@pytest.mark.e2e
@pytest.mark.parametrize('why', _REFUSED)
def test_bad_input_is_one_line(finished, why):
  folder, (_, *refused) = finished
  ended = refused[list(_REFUSED).index(why)]
  assert ended.code == 2
  assert ended.stderr.splitlines()[-1].startswith('paper: error: ')
  assert why in ended.stderr
  assert not (folder / 'build').exists()


@pytest.mark.parametrize('flags, said', [
    ([], 'No op went to another kind of device'),
    (['--may_round'], 'even if they round differently there (--may_round)'),
    ([], 'Seconds of searches are of the processor'),
    (['--clock=wall'], 'Seconds of searches are those that passed'),
    (['--seeds=3', '--seed=2'], '3 seeds from 2: geometric means'),
])
def test_a_page_says_how_it_was_made(paper, flags, said):
  program = paper.__main__
  assert said in program._head(program._parse(['table1', *flags]))


def test_a_folder_in_use_is_named_by_its_flag(paper, tmp_path):
  """The message named --out_dir, but the folder was that of --work_dir."""
  options = paper.cells.Options(settings_lib.Settings(), tmp_path, 'command',
                                rich.console.Console(quiet=True))
  with (run_folder.held(tmp_path, '--work_dir'),
        pytest.raises(errors.GdpError, match='another --work_dir')):
    paper.cells._run(('rnnlm-2@tiny@2xP100',), ('single_device',), options)
