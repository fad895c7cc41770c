"""Watches whom the default placer asks."""

from gdp_grappler.placers import registry


class Clock:
  """Says what it was set to."""

  def __init__(self):
    self.now = 0.

  def __call__(self):
    return self.now


def watch(monkeypatch, clock, seconds, seen=lambda: None):
  """Names of anchors as they are asked, each of which takes so long.

  Each comes with what `seen` said then.
  """
  asked = []
  stock = registry.get

  def get(name):
    # A placer that is made is looked up once more.
    if not asked or asked[-1][0] != name:
      asked.append((name, seen()))
      clock.now += seconds
    return stock(name)

  monkeypatch.setattr(registry, 'get', get)
  return asked


def watch_seconds(monkeypatch):
  """Seconds that each placer may take, by name, as they are asked."""
  seconds = {}
  stock = registry.create

  def create(name):
    placer = stock(name)
    place = placer.place

    def watched(problem):
      seconds[name] = problem.time_budget_s
      return place(problem)

    monkeypatch.setattr(placer, 'place', watched)
    return placer

  monkeypatch.setattr(registry, 'create', create)
  return seconds
