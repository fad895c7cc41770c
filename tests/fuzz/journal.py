"""Reports of a run in a file, so that one that was killed goes on."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any, Collection, Iterator

from fuzz import rules
from fuzz import runs


class Journal:
  """A file with one report a line, written as they come."""

  def __init__(self, path: pathlib.Path, placers: Collection[str]) -> None:
    """Reads what is there.

    Args:
      path: The file; need not exist.
      placers: Those of the run; reports of other runs are passed over.
    """
    self._path, self._placers = path, sorted(placers)

  def reports(self, seeds: Collection[int]) -> Iterator[runs.Report]:
    """Those of some seeds, each once."""
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
    """Writes a further one."""
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
