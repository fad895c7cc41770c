"""Clocks that measure the seconds of a search."""

import subprocess
import sys
import time

from placer_model.benchmark import clocks


def test_what_an_ended_child_has_computed_counts():
  before = clocks.processor_s()
  subprocess.run([sys.executable, '-S', '-c', 'sum(range(2_000_000))'],
                 check=True)
  assert clocks.processor_s() - before > .01


def test_waiting_takes_no_processor():
  before = {name: clock() for name, clock in clocks.CLOCKS.items()}
  time.sleep(.2)
  took = {name: clock() - before[name] for name, clock in clocks.CLOCKS.items()}
  assert took[clocks.WALL] >= .2 > took[clocks.PROCESSOR]
