"""Watches whom the default placer asks."""

from gdp_grappler.placers import best_of


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
  stock = best_of.propose_each

  def propose_each(problem, names, *deadline):
    asked.extend((name, seen()) for name in names)
    clock.now += seconds * len(names)
    return stock(problem, names, *deadline)

  monkeypatch.setattr(best_of, 'propose_each', propose_each)
  return asked


def watch_seconds(monkeypatch):
  """Seconds that each anchor may take, by name, as they are asked."""
  seconds = {}
  stock = best_of.propose_each

  def propose_each(problem, names, deadline):
    seconds.update((name, deadline.remaining_s) for name in names)
    return stock(problem, names, deadline)

  monkeypatch.setattr(best_of, 'propose_each', propose_each)
  return seconds
