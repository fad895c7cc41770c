"""Records the anchors that the default placer calls.

The placer of `quick_schedule` is no anchor, so it is not recorded.
"""

from gdp_grappler.placers import quick_schedule
from gdp_grappler.placers import registry


class Clock:
  """A clock that shows the time to which it was set."""

  def __init__(self):
    self.now = 0.

  def __call__(self):
    return self.now


def watch(monkeypatch, clock, seconds, seen=lambda: None):
  """Returns a list that gets the name of each anchor that is called.

  Each call moves the clock by a number of seconds. The result of `seen` at the
  call is next to the name.
  """
  asked = []
  stock = registry.get

  def get(name):
    # Making a placer looks its name up a second time.
    if name != quick_schedule.PLACER and (not asked or asked[-1][0] != name):
      asked.append((name, seen()))
      clock.now += seconds
    return stock(name)

  monkeypatch.setattr(registry, 'get', get)
  return asked


def watch_seconds(monkeypatch):
  """Returns a dict that gets the time budget of each placer that is called."""
  seconds = {}
  stock = registry.create

  def create(name):
    placer = stock(name)
    place = placer.place

    def watched(problem):
      if name != quick_schedule.PLACER:
        seconds[name] = problem.time_budget_s
      return place(problem)

    monkeypatch.setattr(placer, 'place', watched)
    return placer

  monkeypatch.setattr(registry, 'create', create)
  return seconds
