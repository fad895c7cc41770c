"""The console program in processes of its own."""

import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import gdp_grappler
from gdp_grappler import files
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan
from gdp_grappler.processes import jobs as jobs_lib
from helpers import bench_results
from helpers import clusters
from helpers import forked
from helpers import fresh
from helpers import graphs
from helpers import processes
from helpers import ray_programs
from helpers import warm
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import cell_worker
from placer_model.benchmark import records
from placer_model.benchmark import runner
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

pytestmark = pytest.mark.e2e

_DATA = pathlib.Path(__file__).parents[2] / 'testdata'
# Whoever runs the tests in the background may have Ctrl-C ignored.
_PROGRAM = [
    sys.executable, '-c', 'import signal; '
    'signal.signal(signal.SIGINT, signal.default_int_handler); '
    'from placer_model.bin import gdp_bench; gdp_bench.run()'
]
# Where what it starts with is of no matter.
_FORK = [*_PROGRAM[:2], warm.MARK + _PROGRAM[2]]
_TASKS = ','.join((f'{_DATA / "dense_train_step.pb"}@2xP100',
                   f'{_DATA / "lstm_train_step.pb"}@2xK40'))
_PLACERS = 'gpu_only,metis,random'


def _run_alone(*arguments):
  done = subprocess.run([*_PROGRAM, *arguments],
                        env=fresh.environment_with_path(), capture_output=True,
                        text=True, check=False, timeout=280)
  return fresh.Finished(done.returncode, done.stdout, done.stderr)


@pytest.fixture(name='folder', scope='module')
def _folder(tmp_path_factory):
  """Where `run` runs, and nothing is left."""
  return tmp_path_factory.mktemp('runs')


@pytest.fixture(name='run', scope='module')
def _run(folder):
  """Of command lines that need no process of their own from the start."""
  with forked.Program('helpers.bench_runs:run', folder=folder) as program:
    yield program.run


@pytest.fixture(name='six', scope='module')
def _six(run, tmp_path_factory):
  """The folder of a run of all tasks with all placers, and how it ended."""
  folder = tmp_path_factory.mktemp('six')
  return folder, run(*_flags(folder))


def _flags(out_dir, **changes):
  values = dict(tasks=_TASKS, placers=_PLACERS, out_dir=out_dir) | changes
  return ['--quiet', *(f'--{name}={value}' for name, value in values.items())]


def _results(out_dir):
  return files.read_compressed_json(out_dir / 'results.json.gz')


def _steps(results):
  return {(task['name'], placer): record.get('step_time_s')
          for task in results['tasks']
          for placer, record in task['cells'].items()}


_TF_KERAS = '''
import tensorflow as tf

assert 'tf_keras' in tf.keras.Model.__module__, tf.keras.Model

def dense():
  model = tf.keras.Sequential([
      tf.keras.Input((4,)), tf.keras.layers.Dense(3), tf.keras.layers.Dense(2)])
  model.compile('sgd', 'mse')
  return model
'''


def test_models_of_tf_keras_from_any_folder(tmp_path):
  # Each cell failed: the variable that chooses tf_keras was dropped. Nor was
  # any folder good that has another source tree in it.
  fresh.decoys(tmp_path)
  (tmp_path / 'mine.py').write_text(_TF_KERAS)
  path = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
  done = fresh.run_code(
      'import sys; sys.argv[1:] = ["--quiet", "--tasks=mine:dense@2xP100", '
      '"--placers=metis", "--out_dir=out"]\n'
      'from placer_model.bin import gdp_bench; gdp_bench.run()', 280,
      folder=tmp_path, PYTHONPATH=path, TF_USE_LEGACY_KERAS='1')
  assert done.code == 0, done.stderr
  [seconds] = _steps(_results(tmp_path / 'out')).values()
  assert seconds > 0


def test_help_is_quick(tmp_path):
  # Not even TensorFlow is imported.
  (tmp_path / 'tensorflow.py').write_text('raise OSError("imported")')
  environment = fresh.environment_with_path()
  environment['PYTHONPATH'] = f'{tmp_path}:{environment["PYTHONPATH"]}'
  result = subprocess.run([*_PROGRAM, '--help'], env=environment,
                          capture_output=True, text=True, check=False)
  assert result.returncode == 0 and result.stderr == ''
  assert '--time_budget_s: Seconds for each search' in result.stdout


def test_version_is_said_before_anything_is_asked_for():
  result = subprocess.run([*_PROGRAM, '--quiet', '--version'],
                          env=fresh.environment_with_path(),
                          capture_output=True, text=True, check=False)
  assert (result.returncode, result.stderr) == (0, '')
  assert result.stdout == f'gdp-grappler {gdp_grappler.__version__}\n'


def test_a_reader_of_the_help_may_leave_early():
  ours, theirs = os.pipe()
  os.close(ours)
  with os.fdopen(theirs, 'wb') as output:
    result = subprocess.run([*_PROGRAM, '--help'],
                            env=fresh.environment_with_path(), stdout=output,
                            stderr=subprocess.PIPE, text=True, check=False,
                            timeout=100)
  assert (result.returncode, result.stderr) == (0, '')


_REFUSED = {
    '--tasks and --out_dir': [],
    'jobs': ['--jobs=0'],
    'stray': ['--tasks=t', '--out_dir=o', 'stray'],
    '--report runs nothing': ['--report=r', '--out_dir=o', '--tasks=t'],
    'Cannot read r': ['--report=r', '--out_dir=o'],
    'Did you mean "metis"': ['--tasks=t', '--out_dir=o', '--placers=metsi'],
    'time_budget_s=nan': ['--tasks=t', '--out_dir=o', '--time_budget_s=nan'],
    'cell_timeout_s=inf': ['--tasks=t', '--out_dir=o', '--cell_timeout_s=inf'],
    '--reward=measured': ['--tasks=t', '--out_dir=o', '--local_workers=2'],
    'Leave out --profile': [
        '--tasks=t', '--out_dir=o', '--reward=measured', '--profile=p'
    ],
    'Leave --jobs out': ['--tasks=t', '--out_dir=o', '--ray=auto', '--jobs=2'],
    'Ray Client': ['--tasks=t', '--out_dir=o', '--ray=ray://host:10001'],
    'disturb each other': [
        '--tasks=t', '--out_dir=o', '--reward=measured', '--jobs=2'
    ],
    '--clock=processor does not see': [
        '--tasks=t', '--out_dir=o', '--reward=emulated', '--clock=processor'
    ],
    'Unknown task "rnnlm-3@2xP100"': ['--tasks=rnnlm-3@2xP100', '--out_dir=o'],
    '17xP100': [f'--tasks={_DATA / "dense_train_step.pb"}@17xP100',
                '--out_dir=o'],
    'without @CLUSTER': [
        f'--tasks={_DATA / "dense_train_step.pb"}@2xP100', '--out_dir=o',
        '--reward=measured', '--local_workers=2'
    ]
}  # yapf: disable


@pytest.mark.parametrize('said', _REFUSED)
def test_bad_flags_and_tasks_are_told_before_work(run, folder, said):
  result = run(*_REFUSED[said], '--quiet')
  assert said in fresh.error_line(result, 'gdp_bench')
  assert not list(folder.iterdir())


def test_two_graphs_and_three_placers(run, six):
  tmp_path, result = six
  assert result.code == 0, result.stderr
  assert result.stderr == ''
  assert '[6/6]' in result.stdout and 'Tasks: 2 (simulated)' in result.stdout
  steps = _steps(_results(tmp_path))
  assert len(steps) == 6 and all(steps.values())
  rows = list(csv.DictReader((tmp_path / 'all.csv').read_text().splitlines()))
  written = {(r['task'], r['placer']): float(r['FIFO step']) for r in rows}
  assert written == steps
  assert all(float(row['step / bound']) >= 1 for row in rows)
  assert (tmp_path / 'pictures' / 'bars.png').exists()
  charts = {p.stem for p in (tmp_path / 'pictures' / 'gantt').iterdir()}
  assert charts == {'dense_train_step@2xP100', 'lstm_train_step@2xK40'}
  # Placements with control edges, if these gain, are in files of their own.
  plans = [p.name for p in tmp_path.glob('plans/*/*.json')]
  assert sum(not name.endswith('-ordered.json') for name in plans) == 6

  times = {p: p.stat().st_mtime_ns for p in tmp_path.glob('cells/*/*.json')}
  for quiet in (True, False):
    again = run(*_flags(tmp_path)[not quiet:], '--json')
    assert again.code == 0
    assert ('kept: gpu_only' in again.stderr) != quiet
    assert again.stderr == '' or not quiet
    assert _steps(json.loads(again.stdout)) == steps
  assert {p: p.stat().st_mtime_ns for p in times} == times

  page = (tmp_path / 'README.md').read_bytes()
  (tmp_path / 'README.md').unlink()
  report = run(f'--report={tmp_path / "results.json.gz"}',
               f'--out_dir={tmp_path}')
  assert report.code == 0 and 'Tasks: 2' in report.stdout
  assert (tmp_path / 'README.md').read_bytes() == page


def test_kept_cells_say_how_many_ran_at_a_time(run, tmp_path):
  """The page said that one cell ran at a time, as in the second run."""
  flags = _flags(tmp_path, tasks=_TASKS.split(',')[0], placers='random')
  for more in ['--jobs=2'], []:
    result = run(*flags, *more)
    assert result.code == 0, result.stderr
  assert 'kept: random' in result.stdout
  assert ' 2 cells ran side by side' in (tmp_path / 'README.md').read_text()


def test_equal_placements_share_measured_steps(tmp_path):
  """The luckier one was best, later only by its step with control edges."""
  folder, task = records.Folder(tmp_path), tasks_lib.Task('net', 'local')
  cluster = clusters.make_cluster(1)
  cells = {}
  for step_s, placer, devices, first in (
      (3., 'a', [0, 1], 2.),
      (2., 'b', [1, 0], 2.),
      (1., 'c', [0, 1], 2.),
      (1., 'e', [0, 1], 0.),
  ):
    fifo = folder.plan(task, placer, 'key')
    fifo.parent.mkdir(parents=True, exist_ok=True)
    for path, order in ((fifo, None), (cell_lib.ordered_plan(fifo),
                                       np.array([first, 1.]))):
      plan.save(str(path), graphs.chain(2),
                placement_lib.Placement(devices, cluster, order))
    cells[placer] = bench_results.cell(step_s, ordered_step_time_s=step_s / 2,
                                       spread_s=.1)
  cells['d'] = bench_results.failure()
  bench = runner._Bench(settings_lib.Settings(), folder, None, None, None)
  bench._share_steps(task, dict.fromkeys(cells, 'key'), cells)
  assert [cells[p]['step_time_s'] for p in 'abce'] == [3., 2., 3., 3.]
  assert [cells[p]['ordered_step_time_s'] for p in 'abce'] == [1.5, 1., 1.5, .5]
  assert cells['d'] == bench_results.failure()


def test_the_plan_of_an_ordered_step_is_kept_with_the_other(tmp_path):
  """Only the plan of the FIFO step was."""
  folder, task = records.Folder(tmp_path), tasks_lib.Task('net', 'local')
  bench = runner._Bench(settings_lib.Settings(), folder, None, None, None)
  found = {'plan.json': b'fifo', 'plan-ordered.json': b'ordered'}
  job = cell_worker.Run('a', 'key', 1.)
  for expected in ({'a-key.json', 'a-key-ordered.json'}, {'a-key.json'}):
    bench._record(
        task, jobs_lib.Ended(0, job, found | {'record.json': b'{}'}, '', 1.))
    plans = {path.name for path in tmp_path.glob('plans/net@local/*')}
    assert plans == expected
    found.pop('plan-ordered.json', None)  # A later search finds no edges.


@ray_programs.needs_ray
def test_plans_are_those_of_a_run_without_ray(run, six, tmp_path):
  result = _run_alone(*_flags(tmp_path), '--ray=local', '--jobs=2')
  assert result.code == 0, result.stderr
  found, expected = ({
      path.relative_to(folder): path.read_bytes()
      for path in folder.glob('plans/*/*.json')
  } for folder in (tmp_path, six[0]))
  assert found == expected and len(found) >= 6
  # And a run without goes on where one with Ray ended.
  again = run(*_flags(tmp_path))
  assert again.code == 0 and 'kept: gpu_only' in again.stdout


def test_a_missing_ray_is_one_line(tmp_path):
  found, = forked.run('helpers.ray_programs:without_ray', [],
                      [['--tasks=t', '--out_dir=o', '--ray=local', '--quiet']],
                      folder=tmp_path)
  line = fresh.error_line(found, 'gdp_bench')
  assert "pip install 'gdp-grappler[ray]'" in line
  assert not list(tmp_path.iterdir())


def test_measured_steps(run, tmp_path):
  task = str(_DATA / 'dense_train_step.pb')
  result = run(*_flags(tmp_path, tasks=task, placers='random'),
               '--reward=measured', '--local_workers=2')
  assert result.code == 0, result.stderr
  results = _results(tmp_path)
  assert not results['simulated'] and all(_steps(results).values())
  [cells] = [task['cells'] for task in results['tasks']]
  assert cells['random']['cut_tensors'] and not cells['random']['simulated']
  assert '**measured**' in (tmp_path / 'README.md').read_text()


def test_a_graph_that_cannot_be_loaded(run, tmp_path):
  (tmp_path / 'broken.pb').write_bytes(b'nonsense')
  tasks = f'{tmp_path / "broken.pb"}@2xP100,{_TASKS.split(",")[0]}'
  result = run(*_flags(tmp_path / 'out', tasks=tasks))
  assert result.code == 1
  assert '3 cells failed, the first: broken@2xP100: ' in result.stderr
  text = (tmp_path / 'out' / 'all.md').read_text()
  assert text.count('failed [1]') == 3
  assert '1. broken@2xP100: the graph was not loaded: ' in text
  assert all(
      _steps(_results(tmp_path / 'out'))['dense_train_step@2xP100', p]
      for p in _PLACERS.split(','))


# SIGTERM is passed on as a Ctrl-C.
@pytest.mark.parametrize('number, code', [(signal.SIGTERM, 130),
                                          (signal.SIGKILL, -signal.SIGKILL)])
def test_a_run_that_was_ended_goes_on(run, tmp_path, number, code):
  temporary = tmp_path / 'temporary'
  temporary.mkdir()
  flags = _flags(tmp_path, tasks=_TASKS.split(',')[0])
  with subprocess.Popen([*_FORK, *flags], text=True,
                        env=fresh.environment_with_path()
                        | {'TMPDIR': str(temporary)}, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE) as process:
    try:
      processes.wait_until(lambda: list(tmp_path.glob('cells/*/*.json')),
                           process)
      children = processes.children(process.pid)
      process.send_signal(number)
      _, stderr = process.communicate(timeout=60)
    finally:
      process.kill()
  assert process.returncode == code
  assert processes.ended(children)
  assert list(tmp_path.glob('cells/*/*.json'))
  if number != signal.SIGKILL:
    [line] = stderr.strip().splitlines()
    assert 'Run the same command again' in line
    assert not list(temporary.iterdir())
  result = run(*flags)
  assert result.code == 0 and 'kept: ' in result.stdout
  assert len(_steps(_results(tmp_path))) == 3


def test_another_seed_is_another_cell_and_chart(run, tmp_path):
  # That of another seed, drawn later, once stood for it.
  chart = tmp_path / 'pictures/gantt/dense_train_step@2xP100.png'
  drawn = []
  for seed, cells in ((0, 1), (5, 2), (0, 2)):
    result = run(*_flags(tmp_path, tasks=_TASKS.split(',')[0], placers='random',
                         seed=seed))
    assert result.code == 0, result.stderr
    assert ('kept' in result.stdout) == (len(drawn) == 2)
    assert len(list(tmp_path.glob('cells/*/*.json'))) == cells
    drawn.append(chart.read_bytes())
  assert drawn[0] == drawn[2] != drawn[1]


def test_a_cell_whose_plan_was_lost_is_computed_again(run, six, tmp_path):
  shutil.copytree(six[0], tmp_path, dirs_exist_ok=True)
  flags = _flags(tmp_path, tasks=_TASKS.split(',')[0])
  plans = sorted(plan
                 for plan in tmp_path.glob('plans/dense_train_step*/*.json')
                 if not plan.stem.endswith('-ordered'))
  assert len(plans) == 3
  before = [plan.read_bytes() for plan in plans]
  plans[0].unlink()
  plans[1].write_text('{"devices"')
  plans[2].unlink()
  os.mkfifo(plans[2])
  # A picture is made of the best plan.
  shutil.rmtree(tmp_path / 'pictures')
  result = run(*flags)
  assert result.code == 0 and 'kept' not in result.stdout, result.stderr
  assert [plan.read_bytes() for plan in plans] == before
  assert list(tmp_path.glob('pictures/gantt/*.png'))


def test_a_folder_that_cannot_be_made_is_told_before_the_work(run, tmp_path):
  (tmp_path / 'file').touch()
  done = run('--quiet', f'--out_dir={tmp_path}/file/x', '--tasks=none@2xP100')
  assert f'Cannot write {tmp_path}/file/x' in fresh.error_line(
      done, 'gdp_bench')
