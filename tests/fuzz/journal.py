"""Keeps the reports of a run in a file, so that a killed run can continue."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any, Collection, Iterator

from fuzz import rules
from fuzz import runs


class Journal:
  """A file with one report per line, written at once."""

  def __init__(self, path: pathlib.Path, placers: Collection[str]) -> None:
    """Reads the reports that the file has.

    Args:
      path: The file, which may be missing.
      placers: Placers of the run. Reports of other placers are ignored.
    """
    self._path, self._placers = path, sorted(placers)

  def reports(self, seeds: Collection[int]) -> Iterator[runs.Report]:
    """Returns the reports of some seeds, each once."""
    seen: set[int] = set()
    for line in self._lines():
      try:
        entry = json.loads(line)
      except ValueError:
        continue  # Empty, or the run was killed while it wrote.
      report = _report(entry['report'])
      if (entry['placers'] == self._placers and report.seed in seeds and
          report.seed not in seen):
        seen.add(report.seed)
        yield report

  def add(self, report: runs.Report) -> None:
    """Writes a further report."""
    text = json.dumps(
        dict(placers=self._placers, report=dataclasses.asdict(report)))
    with self._path.open('a', encoding='utf-8') as file:
      # In a line of its own, whatever a killed run left before it.
      file.write(f'\n{text}')

  def _lines(self) -> list[str]:
    if not self._path.exists():
      return []
    return self._path.read_text(encoding='utf-8').splitlines()


def _report(fields: dict[str, Any]) -> runs.Report:
  broken = tuple(
      runs.Broken(**{**each, 'breach': rules.Breach(**each['breach'])})
      for each in fields['broken'])
  return runs.Report(**{**fields, 'broken': broken})
