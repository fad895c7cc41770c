"""The papers' own figures."""

import math

from placer_model.benchmark import published
from placer_model.benchmark import tasks as tasks_lib


def test_every_task_of_the_papers_is_there():
  names = {task.name for task in tasks_lib.PAPER_TASKS}
  assert set(published.GO) == {n for n in names if n.endswith('P100')}
  assert set(published.HDP) == {n for n in names if n.endswith('K40')}


def test_means_are_those_that_the_ratios_give():
  human = [row[1] / row[0] for row in published.GO.values()]
  hdp = [row[3] / row[0] for row in published.GO.values()]
  means = [math.exp(sum(map(math.log, r)) / len(r)) for r in (human, hdp)]
  assert [round(mean, 3) for mean in means] == [1.258, 1.245]
