"""Results, tables, pictures and index of an output folder."""

from __future__ import annotations

import pathlib
from typing import Any, Sequence

from gdp_grappler import files
from placer_model.benchmark import clocks
from placer_model.benchmark import figures
from placer_model.benchmark import headroom
from placer_model.benchmark import records
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tables

_TABLES = {'all': tables.everything, 'means': tables.means}
_TITLES = {
    'all': 'Every figure of every cell', 'means': 'Geometric means over tasks'
}
_KINDS = (' A portfolio makes many placements by variants of the method in its '
          'name, and returns the one with the best price; "published" is the '
          'method alone.')
_MEANS = ('Geometric means over tasks; the number of tasks is in parentheses. '
          'OOM counts placements that exceed a memory.' + _KINDS)
_NOTES = {
    'means':
        _KINDS,
    'all':
        _KINDS
        + ' Ordered: with the control edges that are predicted to pay, perhaps '
        'of another placement of the same search; all other columns are of the '
        'FIFO placement. OOM says what the fullest memory lacks, "missing '
        'memory" what all of them lack.'
}


def results(settings: settings_lib.Settings, command: str,
            tasks: Sequence[dict[str, Any]]) -> dict[str, Any]:
  """Returns the content of the results file.

  Args:
    settings: Settings of the run.
    command: Command that made the results.
    tasks: Summaries of tasks with their 'cells'.
  """
  versions = settings_lib.versions() | {'code': settings_lib.code_digest()[:16]}
  return {
      'schema': settings_lib.SCHEMA, 'simulated': settings.simulated,
      'command': command, 'settings': settings.to_json(), 'versions': versions,
      'tasks': list(tasks)
  }


def write(folder: records.Folder, found: dict[str, Any]) -> None:
  """Writes all files except those of cells.

  Args:
    folder: Output folder. Its charts of schedules are kept.
    found: Result of `results`.

  Raises:
    GdpError: a file cannot be written.
  """
  from placer_model.benchmark import pictures
  settings = settings_lib.Settings.from_json(found['settings'])
  tasks = found['tasks']
  folder.write_results(found)
  for name, make in _TABLES.items():
    table = make(tasks)
    files.write_atomically(
        folder.path / f'{name}.md',
        f'# {_TITLES[name]}\n\n{_kind(settings)}{_NOTES.get(name, "")}\n\n'
        + table.to_markdown())
    files.write_atomically(folder.path / f'{name}.csv', table.to_csv())
  drawn = pictures.draw_all(folder, tasks, settings.reward)
  files.write_atomically(
      folder.path / 'README.md',
      index(settings, found['command'], tasks,
            [path.relative_to(folder.path) for path in drawn],
            (folder.path / 'cells').is_dir()))


def index(settings: settings_lib.Settings, command: str,
          tasks: Sequence[dict[str, Any]], pictures: Sequence[pathlib.Path],
          has_cells: bool) -> str:
  """Returns the README.md of an output folder, as Markdown.

  Args:
    settings: Settings of the run.
    command: Command that made the results.
    tasks: Summaries of tasks with their 'cells'.
    pictures: Pictures in the folder.
    has_cells: Whether the folder has the placements and records of cells.
  """
  count = sum(len(task['cells']) for task in tasks)
  parts = [
      '# Placers compared',
      _kind(settings),
      f'Made by\n\n    {command}\n\n{len(tasks)} tasks, {count} cells. '
      + _how(settings, tasks), '## Means\n\n' + _MEANS + '\n\n'
      + tables.means(tasks).to_markdown().strip(),
      '## Where there is headroom\n\n' + _headroom(tasks),
      '## What limits the best placements\n\n' + _bound(tasks)
  ]
  failed = [line for task in tasks for line in figures.failures(task)]
  if failed:
    parts.insert(
        3, f'**Of {count} cells, {len(failed)} failed:**\n\n'
        + '\n'.join(f'* {line}' for line in dict.fromkeys(failed)))
  parts += [
      '## The tasks\n\n' + _task_table(tasks),
      '## Files\n\n' + _files(pictures, has_cells)
  ]
  return '\n\n'.join(parts) + '\n'


def _kind(settings: settings_lib.Settings) -> str:
  kind = f'All step times are **{settings.reward}**' + (', not measured'
                                                        * settings.simulated)
  small = (', workloads are **small variants** (@tiny), which say nothing '
           'about the full ones' if settings.quick else '')
  return (
      f'{kind}{small}. A speed-up divides the step of the placer in the '
      "column's title by the step of the row. Steps run ready ops first in, "
      'first out, as TensorFlow does.')


def _how(settings: settings_lib.Settings, tasks: Sequence[tables.Task]) -> str:
  budget_s = settings.budget_s('local_search')
  who = ('each search' if settings.time_budget_s is not None else
         'searches that do not learn')
  budget = ('searches ended by limits of their own, not by time'
            if budget_s is None else f'{who} had {budget_s:g} s')
  side_by_side = _side_by_side(settings, tasks)
  if side_by_side == '1':
    jobs = 'One cell ran at a time, so seconds of searches compare.'
    if settings.clock == clocks.PROCESSOR:
      jobs = 'Seconds of searches are of the processor.'
  else:
    jobs = (f'{side_by_side} cells ran side by side: they shared the cores, '
            'so seconds of searches are longer than alone, and a search with a '
            'time budget got less far.')
  numbers = ('Ops might go to another type of device even if they round '
             'differently there (may_round).' if settings.may_round else
             'No op went to another type of device if it rounds differently '
             'there.')
  shared = ('' if settings.simulated else
            f' Cells with equal placements share one {settings.reward} step.')
  return (f'Seed {settings.seed}; {budget}. {numbers} {jobs}{shared} Versions '
          f'are in [{records.RESULTS}]({records.RESULTS}).')


def _side_by_side(settings: settings_lib.Settings,
                  tasks: Sequence[tables.Task]) -> str:
  """Returns how many cells ran at a time: '1', '2' or, if it varied, '1 to 2'.

  Cells of an earlier run are kept, so each cell's own number counts.
  """
  jobs = {
      cell['settings']['jobs'] for task in tasks
      for cell in task['cells'].values() if 'settings' in cell
  } or {settings.jobs}
  return ' to '.join(map(str, sorted({min(jobs), max(jobs)})))


def _headroom(tasks: Sequence[dict[str, Any]]) -> str:
  """Returns tasks whose best placement is far above the bound, as Markdown."""
  verdicts = sorted(_verdicts(tasks), key=lambda v: -v.over_bound)
  if not verdicts:
    return 'No lower bound is known for these tasks.'
  rows = [v for v in verdicts if v.reason != 'bound']
  mean, count = figures.geomean(v.over_bound for v in verdicts)
  text = (
      'How much could a better placement gain? No step is shorter than the '
      'critical path without transfers, nor than all work divided evenly over '
      'all devices. The larger one is the *bound*. A placement that has to '
      'move data cannot reach it. The best placements take '
      f'{mean:.2f} times the bound (geometric mean of {count} tasks); '
      f'{len(rows)} of {count} are more than 5 % above it. The last two '
      'columns are steps with control edges. *Waiting* means that neither '
      'work nor communication limits the step: another order or placement may '
      'gain.')
  return text + '\n\n' + _verdict_table(rows or verdicts)


def _bound(tasks: Sequence[dict[str, Any]]) -> str:
  """Returns tasks by what limits their best placement, as Markdown."""
  verdicts = _verdicts(tasks)
  kinds = {
      'communication': [
          v for v in verdicts if v.reason in headroom.COMMUNICATION
      ], 'memory (the best placement fills one to 90 %)': [
          v for v in verdicts if v.is_full
      ],
      'the work of one device': [v for v in verdicts if v.reason == 'device'],
      'the bound itself': [v for v in verdicts if v.reason == 'bound'],
      'waiting: ops wait in turn for devices and links': [
          v for v in verdicts if v.reason == 'waiting'
      ]
  }
  # Results of an earlier version do not say what the host limits.
  hosted = [v for v in verdicts if v.reason == 'host']
  if hosted:
    kinds["the host's dispatch for one device"] = hosted
  lines = [f'* By {kind}: {_names(found)}.' for kind, found in kinds.items()]
  if any(v.needs_several is not None for v in verdicts):
    several = [v for v in verdicts if v.needs_several]
    lines.append(f'* No accelerator holds the graph alone: {_names(several)}.')
  return ('A path with its transfers, a link, a device, or a device with the '
          "host's dispatch for it that is busy for 90 % of the step limits the "
          'best placement.\n\n' + '\n'.join(lines))


def _names(verdicts: Sequence[headroom.Verdict]) -> str:
  return ', '.join(verdict.task for verdict in verdicts) or 'none'


def _verdicts(tasks: Sequence[dict[str, Any]]) -> list[headroom.Verdict]:
  found = (headroom.verdict(task) for task in tasks)
  return [verdict for verdict in found if verdict]


def _verdict_table(verdicts: Sequence[headroom.Verdict]) -> str:
  rows = tuple((v.task, v.placer, f'{v.step_time_s:.4g} s',
                f'{v.lower_bound_s:.4g} s ({v.bound_by})',
                figures.times(v.over_bound), v.text, *_ordered(v))
               for v in verdicts)
  return tables.Table(
      ('task', 'best placer', 'step', 'bound', 'step / bound', 'limited by',
       'best, with control edges', 'step / bound'), rows,
      rows).to_markdown().strip()


def _ordered(verdict: headroom.Verdict) -> tuple[str, str]:
  step_s = verdict.ordered_step_time_s
  if step_s is None:
    return figures.NONE, figures.NONE
  return (f'{step_s:.4g} s ({verdict.ordered})',
          figures.times(step_s / verdict.lower_bound_s))


def _task_table(tasks: Sequence[dict[str, Any]]) -> str:
  rows = tuple(
      tuple(
          str(value or figures.NONE)
          for value in (task['name'], task['num_ops'], task.get('paper_ops'),
                        task.get('num_groups'), task.get('setting')))
      for task in tasks)
  return tables.Table(('task', 'ops', "paper's ops", 'groups', 'setting'), rows,
                      rows).to_markdown().strip()


def _files(pictures: Sequence[pathlib.Path], has_cells: bool) -> str:
  lines = [
      f'* [{name}.md]({name}.md), [{name}.csv]({name}.csv): '
      f'{_TITLES[name]}' for name in _TABLES
  ]
  lines += [
      f'* [{records.RESULTS}]({records.RESULTS}): all of it, with curves; '
      '`gdp_bench --report` makes this folder of it again'
  ]
  if has_cells:
    lines.append('* plans/: every placement, as `gdp simulate --plan` reads '
                 'it, and as NAME-ordered.json the placement of the ordered '
                 'step, if control edges are predicted to pay; cells/: a '
                 'record per cell, with the step of its own run')
  if pictures:
    lines.append('* pictures: ' + ', '.join(
        f'[{path.stem}]({path.as_posix()})' for path in pictures))
  return '\n'.join(lines)
