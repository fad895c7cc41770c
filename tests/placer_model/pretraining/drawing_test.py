from placer_model.pretraining import drawing


class _Team:
  """Finds every third problem of no use."""

  def __init__(self):
    self.asked = []

  def results(self, jobs, shown=True):
    assert not shown
    self.asked += [job.arguments for job in jobs]
    return [
        None if job.arguments[-1] % 3 == 0 else job.arguments[-1]
        for job in jobs
    ]


def test_the_first_of_use_each_by_its_number():
  team = _Team()
  assert drawing.first(team, 4, seed=7, number=2) == [1, 2, 4, 5]
  assert team.asked == [(7, 2, 0, problem) for problem in range(6)]


def test_none_wanted_none_asked():
  team = _Team()
  assert not drawing.first(team, 0, 0, 0) and not team.asked
