import pytest

from gdp_grappler.plugin.fitting import guard


class _Clock:
  """A clock: each step takes the next of the given times."""

  def __init__(self, seconds):
    self.now = 0.
    self._seconds = list(seconds)

  def perf_counter(self):
    return self.now

  def step(self):
    self.now += self._seconds.pop(0)
    return {'loss': self.now}


def _run(monkeypatch, seconds):
  clock = _Clock(seconds)
  monkeypatch.setattr(guard, 'time', clock)
  timing = guard.StepTiming()
  results = []
  while not timing.is_done:
    results.append(timing.run(clock.step))
  return timing, results


def test_median_without_the_first_steps(monkeypatch):
  timing, results = _run(monkeypatch, [9., 9., .1, .3, .2, 5., .1, .2])
  assert timing.steps == 6
  assert timing.median_s == pytest.approx(.2)
  assert results[0] == {'loss': 9.}
  assert timing.compile_s == pytest.approx(18. - 2 * .2)


def test_slow_steps_are_timed_less_often(monkeypatch):
  timing, _ = _run(monkeypatch, [9., 9., 4., 4., 5., 4.])
  assert timing.steps == 4
  assert timing.median_s == pytest.approx(4.)


@pytest.mark.parametrize('slow', [1., 10.])
def test_small_last_batches_count_alike_whichever_call_is_the_first(
    monkeypatch, slow):
  """Once two ways were compared by a small and a full batch."""
  medians = [
      _run(monkeypatch, batches * 10)[0].median_s
      for batches in ([17. * slow, slow], [slow, 17. * slow])
  ]
  assert medians[0] == medians[1]


def test_waits_for_every_result():
  asked = []

  class Late:

    def numpy(self):
      asked.append(self)

  late = {'loss': Late(), 'more': [Late()]}
  assert guard.StepTiming().run(lambda: late) is late
  assert len(asked) == 2


def test_a_step_that_fails_is_not_counted():
  timing = guard.StepTiming()
  with pytest.raises(StopIteration):
    timing.run(lambda: next(iter(())))
  assert timing.steps == 0 and not timing.is_done
