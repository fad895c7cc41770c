"""The process behind `calibrator`: measures one step after the other.

The first message is a `Setup`. The answer is a `Card`, or a `Failure` that
gives the reason why there is nothing to calibrate. Every further message is a
pair of a step's name and the seconds that the step may take. The answer is an
`Answer`.
"""

from __future__ import annotations

import functools
import sys

from gdp_grappler.evaluation.calibrating import steps as steps_lib
from gdp_grappler.processes import messages


def main() -> None:
  """Serves until it is killed or its parent ends."""
  answers = messages.begin_child()
  request = functools.partial(messages.receive, sys.stdin.buffer.read)
  # TensorFlow may print when it is imported.
  from gdp_grappler.evaluation.calibrating import card
  setup = request()
  found = card.describe(setup)
  messages.send(answers, found)
  if isinstance(found, messages.Failure):
    return
  measurer = card.Measurer(setup)
  by_name = {step.name: step for step in steps_lib.all_steps()}
  try:
    while True:
      name, budget_s = request()
      messages.send(answers, measurer.measure(by_name[name], budget_s))
  except EOFError:
    return
