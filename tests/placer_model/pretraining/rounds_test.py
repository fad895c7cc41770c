from placer_model.pretraining import rounds


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
  assert rounds.drawn(team, 4, seed=7, number=2) == [1, 2, 4, 5]
  assert team.asked == [(7, 2, 0, problem) for problem in range(6)]


def test_none_wanted_none_asked():
  team = _Team()
  assert not rounds.drawn(team, 0, 0, 0) and not team.asked


def test_rounds_end_with_the_last_or_with_the_time():
  done, told = [1], []

  def one():
    done.append(len(done) + 1)
    return f'round {len(done)}'

  rounds.go_on(done, 3, one, lambda: True, told.append)
  assert told == ['round 2', 'round 3']
  rounds.go_on(done, 3, one, lambda: False, told.append)
  assert len(done) == 3 and len(told) == 2
  rounds.go_on(done, 5, one, lambda: len(done) < 4, told.append)
  assert told[2:] == ['round 4', 'The time is up after 4 of 5 rounds.']


def test_time_is_counted_from_the_beginning():
  ticks = iter([5., 6., 7.])
  in_time = rounds.clock_of(2., lambda: next(ticks))
  assert in_time() and not in_time()
  assert rounds.clock_of(None, lambda: 0.)()
