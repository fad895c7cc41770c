"""A run of `gdp_bench`, from tasks and placers to an output folder."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any, Mapping, Sequence

import rich.console

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import scratch as scratch_lib
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.problems import rewards
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import machines as machines_lib
from placer_model import run_folder
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import cell_worker
from placer_model.benchmark import figures
from placer_model.benchmark import loader as loader_lib
from placer_model.benchmark import loading
from placer_model.benchmark import loading_worker
from placer_model.benchmark import placer_sets
from placer_model.benchmark import progress as progress_lib
from placer_model.benchmark import records
from placer_model.benchmark import report
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

# Name of the cluster of --local_workers in the name of a task.
_WORKERS = 'workers'
_RUN_CELLS = f'{cell_worker.__name__}:make'


class Interrupted(Exception):
  """The user pressed Ctrl-C; finished cells are kept."""


@dataclasses.dataclass(frozen=True)
class BenchOptions:
  """Options of a run, as given on the command line.

  Attributes:
    tasks: Text for `tasks.parse`.
    placers: Text for `placer_sets.parse`.
    out_dir: Output folder. Its finished cells are kept.
    settings: Settings of all cells.
    command: The command line, for the index.
    ray: Ray cluster that runs the cells, see `machines.of`. None means
      processes of this machine.
    folder_flag: Flag that named the output folder, for messages.
  """

  tasks: str
  placers: str
  out_dir: pathlib.Path
  settings: settings_lib.Settings
  command: str
  ray: str | None = None
  folder_flag: str = '--out_dir'


def run(options: BenchOptions, console: rich.console.Console) -> dict[str, Any]:
  """Computes missing cells and writes all tables; returns all results.

  Args:
    options: Options of the run.
    console: Console for progress.

  Raises:
    GdpError: the input is bad, another run uses `out_dir`, or the disk is full.
    Interrupted: the user pressed Ctrl-C.
  """
  placers = placer_sets.parse(options.placers)
  with loader_lib.Loader() as loader:
    tasks = _tasks(options, loader)
    clusters = {task: _cluster(task, options.settings) for task in tasks}
    grid = [(task, placer) for task in tasks
            for placer in placer_sets.applicable(
                placers, clusters[task], bool(task.expert),
                placer_sets.named_by_user(options.placers))]
    with (run_folder.held(options.out_dir, options.folder_flag),
          machines_lib.of(options.ray, _workers(options)) as machines):
      folder = records.Folder(options.out_dir)
      # A Ray cluster says how many cells run side by side.
      settings = dataclasses.replace(options.settings, jobs=machines.width)
      bench = _Bench(settings, folder, loader, machines, console)
      try:
        found = report.results(settings, options.command,
                               bench.run(tasks, grid))
        report.write(folder, found)
        return found
      except KeyboardInterrupt:
        raise Interrupted(
            f'interrupted; {bench.finished} cells are kept in '
            f'{options.out_dir}. Run the same command again to go on from '
            'there.') from None


def report_again(path: pathlib.Path, out_dir: pathlib.Path) -> dict[str, Any]:
  """Writes the tables and pictures of existing results; returns these.

  Args:
    path: File of the results.
    out_dir: Output folder.

  Raises:
    GdpError: the results cannot be read, another run uses `out_dir`, or the
      disk is full.
  """
  found = records.read_results(path)
  with run_folder.held(out_dir, '--out_dir'):
    report.write(records.Folder(out_dir), found)
  return found


def failures(results: dict[str, Any]) -> list[str]:
  """Returns a line for each cell of the results that failed."""
  return [line for task in results['tasks'] for line in figures.failures(task)]


def _workers(options: BenchOptions) -> int | None:
  """Returns the number of parallel cells; None leaves it to a Ray cluster."""
  jobs = options.settings.jobs
  return None if options.ray and jobs == 1 else jobs


def _tasks(options: BenchOptions,
           loader: loader_lib.Loader) -> tuple[tasks_lib.Task, ...]:
  workloads = loader.workloads()
  if isinstance(workloads, loading_worker.Failure):
    raise errors.GdpError('The workloads cannot be listed: '
                          f'{workloads.message}.')
  settings = options.settings
  default = '' if settings.simulated else (
      _WORKERS if settings.local_workers else 'local')
  return tasks_lib.parse(options.tasks, workloads, workloads.__getitem__,
                         quick=settings.quick, default_cluster=default)


def _cluster(task: tasks_lib.Task,
             settings: settings_lib.Settings) -> cluster_lib.Cluster:
  """Returns a task's cluster; an unknown one is an error before any work."""
  if settings.local_workers and task.cluster != _WORKERS:
    raise errors.GdpError(
        f'Task {task.name} names a cluster, but steps are to be measured on '
        '--local_workers. Give the task without @CLUSTER.')
  return loading.cluster(task, settings)


class _Bench:
  """A run, with the number of its finished cells."""

  def __init__(self, settings: settings_lib.Settings, folder: records.Folder,
               loader: loader_lib.Loader, machines: jobs_lib.Machines,
               console: rich.console.Console) -> None:
    self._settings, self._folder = settings, folder
    self._loader, self._console = loader, console
    self._machines = machines
    self.finished = 0

  def run(self, tasks: tuple[tasks_lib.Task, ...],
          grid: Sequence[tuple[tasks_lib.Task, str]]) -> list[dict[str, Any]]:
    """Returns every task's part of the results."""
    with scratch_lib.Folder('gdp_bench') as scratch, progress_lib.Progress(
        self._console, [p for _, p in grid], self._machines.width) as progress:
      return [
          self._run_task(task, [p for t, p in grid if t == task],
                         pathlib.Path(scratch.name) / 'task', progress)
          for task in tasks
      ]

  def _run_task(self, task: tasks_lib.Task, placers: Sequence[str],
                path: pathlib.Path,
                progress: progress_lib.Progress) -> dict[str, Any]:
    progress.show(f'{task.name}: loading')
    answer = self._loader.load(task, self._settings, path)
    if isinstance(answer, loading_worker.Failure):
      return self._not_loaded(task, placers, answer.message, progress)
    summary = answer.fields
    keys = {
        p:
            settings_lib.cell_key(self._settings, task.name, summary['digest'],
                                  p) for p in placers
    }
    cells = self._known(task, keys)
    progress.skip_finished([p for p in placers if p in cells])
    cells |= self._compute(task, path, progress,
                           {p: k for p, k in keys.items() if p not in cells})
    cells = {placer: cells[placer] for placer in placers}
    if self._settings.simulated:
      self._draw(task, path, keys, cells, progress)
    else:
      self._share_steps(task, keys, cells)
    return {**summary, 'cells': cells}

  def _not_loaded(self, task: tasks_lib.Task, placers: Sequence[str],
                  message: str,
                  progress: progress_lib.Progress) -> dict[str, Any]:
    """Returns a task whose cells have all failed for one reason."""
    cells = {
        placer: {
            'task': task.name, 'placer': placer, 'status': cell_lib.FAILED,
            'message': f'the graph was not loaded: {message}'
        } for placer in placers
    }
    progress.not_loaded(task.name, placers, message)
    return {
        'name': task.name, 'file_name': task.file_name, 'label': task.label,
        'cluster': task.cluster, 'setting': '', 'num_ops': None,
        'num_accelerators': None, 'lower_bound_s': None, 'cells': cells
    }

  def _known(self, task: tasks_lib.Task, keys: Mapping[str,
                                                       str]) -> dict[str, Any]:
    """Returns usable records of an earlier run.

    A failed cell is computed again, and so is a cell whose placement is lost or
    damaged.
    """
    found = {}
    for placer, key in keys.items():
      record = records.read(self._folder.record(task, placer, key), key)
      if (record and record['status'] != cell_lib.FAILED and
          (not figures.has_figures(record) or
           records.has_plan(self._folder.plan(task, placer, key)))):
        found[placer] = record
    self.finished += len(found)
    return found

  def _compute(self, task: tasks_lib.Task, path: pathlib.Path,
               progress: progress_lib.Progress,
               keys: Mapping[str, str]) -> dict[str, Any]:
    cells = [
        cell_worker.Run(placer, key, self._settings.timeout_s(placer))
        for placer, key in keys.items()
    ]
    for cell in cells:
      self._folder.record(task, cell.placer, cell.key).unlink(missing_ok=True)
    if not cells:
      return {}
    progress.show(f'{task.name}: {", ".join(keys)}')
    found = {}
    with self._team(path) as team:
      for ended in team.run(cells):
        record = self._record(task, ended)
        progress.ended(record, ended.seconds)
        found[ended.job.placer] = record
    return found

  def _team(self, path: pathlib.Path) -> jobs_lib.Team[Any]:
    """Returns workers for the cells of a task, which share the cores."""
    threads = max(1, len(os.sched_getaffinity(0)) // self._machines.width)
    return self._machines.team(
        _RUN_CELLS, cell_worker.Setup(path.read_bytes(), self._settings,
                                      threads),
        whole_host=self._settings.reward == rewards.MEASURED)

  def _record(self, task: tasks_lib.Task,
              ended: jobs_lib.Ended[cell_worker.Run]) -> dict[str, Any]:
    """Writes the files of a cell, its record last; returns the record."""
    cell = ended.job
    path = self._folder.record(task, cell.placer, cell.key)
    if not ended.problem:
      plan = self._folder.plan(task, cell.placer, cell.key)
      for name, plan_path in ((cell_worker.PLAN, plan),
                              (cell_worker.ORDERED_PLAN,
                               cell_lib.ordered_plan(plan))):
        plan_path.unlink(missing_ok=True)
        if name in ended.result:
          files.write_atomically(plan_path, ended.result[name],
                                 make_folder=True)
      files.write_atomically(path, ended.result[cell_worker.RECORD],
                             make_folder=True)
      record = records.read(path, cell.key)
      if record is not None:
        self.finished += 1
        return record
    return records.write_failure(path, cell.key, task.name, cell.placer,
                                 ended.problem or 'the result cannot be read')

  def _share_steps(self, task: tasks_lib.Task, keys: Mapping[str, str],
                   cells: dict[str, Any]) -> None:
    """Gives cells with equal placements the steps of the first of them.

    Two measurements of one placement differ. So chance would rank one of two
    placers with equal placements above the other.
    """
    fifo: dict[frozenset[tuple[str, str]], dict[str, Any]] = {}
    ordered: dict[bytes | str, dict[str, Any]] = {}
    for placer, record in cells.items():
      if figures.has_figures(record):
        path = self._folder.plan(task, placer, keys[placer])
        devices = frozenset(plan_lib.read(str(path)).devices.items())
        # Ordered placements are equal only with the same priorities.
        edges = cell_lib.ordered_plan(path)
        order = files.read(edges) if edges.exists() else placer
        cells[placer] = cell_lib.with_step_of(record,
                                              fifo.setdefault(devices, record),
                                              ordered.setdefault(order, record))

  def _draw(self, task: tasks_lib.Task, path: pathlib.Path, keys: Mapping[str,
                                                                          str],
            cells: Mapping[str, Any], progress: progress_lib.Progress) -> None:
    """Draws the chart of the best placement, unless it exists."""
    best = figures.best(cells)
    if best is None:
      return
    picture = self._folder.chart(task.file_name)
    record = self._folder.record(task, best, keys[best])
    # A picture gets the modification time of the record that it shows. So
    # another run's picture in this folder is recognized even if it is newer.
    shown = record.stat().st_mtime_ns
    if picture.exists() and picture.stat().st_mtime_ns == shown:
      return
    progress.show(f'{task.name}: drawing')
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.unlink(missing_ok=True)
    title = (f'{task.name}: {best}, {figures.step(cells[best])} per step '
             '(simulated, first in, first out)')
    plan = files.read(self._folder.plan(task, best, keys[best]))
    with self._team(path) as team:
      for ended in team.run([cell_worker.Draw(title, plan)]):
        if ended.problem:
          progress.show(f'{task.name}: no chart: {ended.problem}')
        else:
          picture.write_bytes(ended.result[cell_worker.CHART])
          os.utime(picture, ns=(shown, shown))
