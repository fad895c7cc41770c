"""The papers' own figures."""

import math

from helpers import bench_results
from placer_model.benchmark import published
from placer_model.benchmark import tasks as tasks_lib


def test_every_task_of_the_papers_is_there():
  names = {
      table: [t.name for t in tasks_lib.PAPER_TASKS if t.table == table]
      for table in (tasks_lib.GDP, tasks_lib.HDP)
  }
  assert set(published.GO) == set(names[tasks_lib.GDP])
  assert set(published.HDP) == set(names[tasks_lib.HDP])


def test_means_are_those_that_the_ratios_give():
  human = [row[1] / row[0] for row in published.GO.values()]
  hdp = [row[3] / row[0] for row in published.GO.values()]
  means = [math.exp(sum(map(math.log, r)) / len(r)) for r in (human, hdp)]
  assert [round(mean, 3) for mean in means] == [1.258, 1.245]


def test_only_full_tasks_have_published_figures():
  full = bench_results.task('rnnlm-2@2xP100')
  tiny = bench_results.task('rnnlm-2@tiny@2xP100')
  text = published.beside_table1([full, tiny])
  assert '| rnnlm-2@2xP100 | 0.173 s | 0.192 s |' in text
  assert 'tiny' not in text and published.beside_table1([tiny]) == ''


def test_hdp_is_compared_with_what_fits():
  text = published.beside_hdp_table([bench_results.task('nmt-2@2xK40')])
  assert '| OOM | 2.13 s | 3.21 s | 5.34 s | 0.84 s | 2.536x |' in text
