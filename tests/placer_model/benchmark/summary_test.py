import io

import pytest
import rich.console

from gdp_grappler.problems import rewards
from helpers import bench_results
from placer_model.benchmark import summary


def _shown(**task_changes):
  tasks = [
      bench_results.task(metis=bench_results.cell(2.),
                         human_expert=bench_results.cell(4.)),
      bench_results.task('other@2xP100', metis=bench_results.failure())
  ]
  results = {'tasks': tasks, 'settings': {'may_round': False}}
  console = rich.console.Console(file=io.StringIO(), width=200)
  summary.show(results | task_changes, 'my/folder', console)
  return console.file.getvalue()


def test_a_row_per_placer_and_where_everything_is():
  text = _shown()
  assert 'Tasks: 2 (simulated); geometric means' in text
  # A portfolio.
  row, = (line for line in text.splitlines() if line.startswith('metis*'))
  assert '2.00' in row  # 4 s of the expert over 2 s.
  assert 'human_expert*' not in text and 'human_expert' in text
  assert 'my/folder/README.md' in text
  assert text.splitlines()[-1].startswith('Next: gdp place GRAPH')
  assert '--placer=metis ' in text


def test_a_mean_of_fewer_tasks_says_so():
  """A mean of one task of two looked like a mean of both."""
  row, = (line for line in _shown().splitlines() if line.startswith('metis*'))
  assert row.split()[1] == '2' and '2.000x (1)' in row
  alone = [
      bench_results.task(metis=bench_results.cell(2.),
                         human_expert=bench_results.cell(4.))
  ]
  row, = (line for line in _shown(tasks=alone).splitlines()
          if line.startswith('metis*'))
  assert '2.000x' in row and '(1)' not in row


@pytest.mark.parametrize('settings, said', [({'may_round': True}, True),
                                            ({'may_round': False}, False),
                                            ({}, True)])
def test_what_may_round_is_called_so(settings, said):
  """Results of before the option, which might round, were shown as exact."""
  end = ', may round' if said else ''
  assert f'(simulated{end});' in _shown(settings=settings)


@pytest.mark.parametrize('other', ['human_expert', 'a_former_placer'])
def test_no_placer_is_advised_that_places_no_graph_of_the_user(other):
  """The advice was a placer that needs an expert, or a removed one."""
  cells = {other: bench_results.cell(1.)}
  text = _shown(tasks=[bench_results.task(**cells)])
  assert 'gdp place GRAPH --cluster=CLUSTER --output' in text
  cells['metis'] = bench_results.cell(2.)
  assert '--placer=metis' in _shown(tasks=[bench_results.task(**cells)])


def test_what_is_measured_or_small_is_called_so():
  for kind in rewards.ALL:
    assert f'({kind}, small variants)' in _shown(
        settings={'quick': True, 'reward': kind, 'may_round': False})
