"""Notebooks whose outputs are made anew."""

from helpers import benchmarks

notebooks = benchmarks.module('showing.notebooks')


def test_a_notebook_that_takes_too_long_stays_as_it_was(tmp_path, monkeypatch):
  """It was a traceback, and the other notebooks did not run."""
  path = tmp_path / 'long.ipynb'
  path.write_text('{"cells": []}')
  monkeypatch.setattr(notebooks, '_TIMEOUT_S', 0.)
  assert notebooks.run(path) == 'It takes longer than 0 s.'
  assert path.read_text() == '{"cells": []}'
