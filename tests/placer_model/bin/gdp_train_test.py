"""The console program in processes of its own."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys

import pytest

from gdp_grappler import native
from helpers import forked
from helpers import fresh
from helpers import processes
from helpers import warm

pytestmark = pytest.mark.e2e

_STEP = pathlib.Path(__file__).parents[2] / 'testdata' / 'dense_train_step.pb'
# Where it matters that it runs, not what it learns.
_SMALL = [
    sys.executable, '-c',
    warm.MARK + 'from helpers import small_training; small_training.run()'
]


@pytest.fixture(name='program', scope='module')
def _program():
  """For command lines that need no process of their own from the start."""
  with forked.Program('helpers.small_training:run',
                      ['tensorflow', 'placer_model.training.run']) as result:
    yield result


def _write_graph(path):
  """Two branches of matrix products; a GraphDef as text."""
  lines = [
      'node { name: "x" op: "Placeholder" attr { key: "dtype" value { '
      'type: DT_FLOAT } } attr { key: "shape" value { shape { dim { '
      'size: 512 } dim { size: 512 } } } } }'
  ]
  for branch in 'ab':
    source = 'x'
    for step in range(3):
      name = f'{branch}{step}'
      lines.append(
          f'node {{ name: "{name}" op: "MatMul" input: "{source}" input: "x" '
          'attr { key: "T" value { type: DT_FLOAT } } }')
      source = name
  lines.append('node { name: "sum" op: "AddV2" input: "a2" input: "b2" '
               'attr { key: "T" value { type: DT_FLOAT } } }')
  path.write_text('\n'.join(lines))
  return str(path)


@pytest.fixture(scope='module')
def graph_path(tmp_path_factory):
  return _write_graph(tmp_path_factory.mktemp('graph') / 'branches.pbtxt')


def _flags(graph_path, model_dir, **flags):
  values = dict(graph=graph_path, cluster='2xP100', reward='simulated',
                model_dir=str(model_dir), rollouts=4)
  values = {'network': 'one_shot'} | values | flags
  return ['--quiet', *(f'--{name}={value}' for name, value in values.items())]


_BAD_FLAGS = {
    '--graph and --cluster and --model_dir': [],
    ': --model_dir': ['--graph=g', '--cluster=2xP100'],
    'iterations=many': ['--iterations=many'],
    'iterations=-1': ['--iterations=-1'],
    'reward': ['--reward=guessed'],
    'time_budget_s=nan': ['--graph=g', '--cluster=c', '--model_dir=m',
                          '--time_budget_s=nan'],
    'time_budget_s=inf': ['--graph=g', '--cluster=c', '--model_dir=m',
                          '--time_budget_s=1e400'],
    'seed=4294967296': ['--seed=4294967296'],
    'grpah': ['--grpah=g'],
    'stray': ['--graph=g', '--cluster=c', '--model_dir=m', 'stray']
}  # yapf: disable
_BAD_INPUT = {
    '/nowhere/graph.pb': {'graph': '/nowhere/graph.pb'},
    '17xP100': {'cluster': '17xP100'},
    '--reward=measured': {'local_workers': 2},
    'Both --target and --local_workers': {
        'reward': 'measured', 'target': 'grpc://host:1', 'local_workers': 2
    },
    '1000000 local workers': {'reward': 'measured', 'local_workers': 10**6},
    'is not a target': {'reward': 'measured', 'target': 'localhost:1'},
    'cannot be reached within 2 s': {
        'reward': 'measured', 'target': 'grpc://localhost:1'
    },
    'has device /job:localhost': {'reward': 'measured', 'local_workers': 2},
    'There is no cluster': {'cluster': 'target'},
    'papper': {'config': 'papper'},
    '--config=paper is about the network of one forward pass': {
        'config': 'paper', 'network': 'moves'
    },
    'holds no move network': {
        'network': 'moves', 'init_policy': '/nowhere'
    },
    'neither a policy nor checkpoints': {
        'network': 'one_shot', 'init_policy': '/nowhere'
    },
    'Both --graphs and --graph': {'graphs': 'rnnlm-2'},
    '--clusters goes with --graphs': {'clusters': '2xP100'},
    '--graphs names no graph': {
        'graph': '', 'cluster': '', 'graphs': ' , '
    },
    'Unknown task "rnnlm-3"': {
        'graph': '', 'cluster': '', 'graphs': 'rnnlm-2,rnnlm-3'
    },
    'nowhere.txt': {'graph': '', 'cluster': '', 'graphs': '/nowhere.txt'},
    '18xP100': {
        'graph': '', 'cluster': '', 'graphs': 'rnnlm-2@tiny',
        'clusters': '2xP100,18xP100'
    },
    'priced by simulation': {
        'graph': '', 'cluster': '', 'graphs': 'rnnlm-2@tiny',
        'reward': 'emulated'
    },
    '/dev/null/model': {'model_dir': '/dev/null/model', 'iterations': 1}
}  # yapf: disable


@pytest.fixture(name='ended', scope='module')
def _ended(program, graph_path, tmp_path_factory):
  """Folder of models, and what each command line led to."""
  models = tmp_path_factory.mktemp('models')
  given = _BAD_FLAGS | {'help': ['--help']}
  pipe = tmp_path_factory.mktemp('pipe') / 'pipe.txt'
  os.mkfifo(pipe)
  given['no regular file'] = [
      '--quiet', f'--graphs={pipe}', f'--model_dir={models / "pipe"}'
  ]
  for said, changes in _BAD_INPUT.items():
    values = dict(graph=graph_path, cluster='2xP100',
                  model_dir=models / str(len(given))) | changes
    given[said] = [
        '--quiet', *(f'--{name}={value}' for name, value in values.items())
    ]
  found = {said: program.run(*arguments) for said, arguments in given.items()}
  return models, found


@pytest.mark.parametrize('said', [*_BAD_FLAGS, *_BAD_INPUT, 'no regular file'])
def test_bad_flags_and_bad_input(ended, said):
  models, found = ended
  assert said in fresh.error_line(found[said], 'gdp_train')
  assert not list(models.iterdir())


def test_help_lists_the_flags(ended):
  result = ended[1]['help']
  assert result.code == 0
  assert '--model_dir: Where checkpoints' in result.stdout
  assert '(default 0)' in result.stdout
  assert result.stderr == ''


def test_full_disk(program, graph_path, tmp_path):
  """No file may grow beyond 10 kB: the first checkpoint fails."""
  kind = resource.RLIMIT_FSIZE
  before = resource.prlimit(program.pid, kind)
  resource.prlimit(program.pid, kind, (10_000, before[1]))  # Forks inherit it.
  try:
    result = program.run(*_flags(graph_path, tmp_path, iterations=1))
  finally:
    resource.prlimit(program.pid, kind, before)
  assert 'Free some space' in fresh.error_line(result, 'gdp_train')
  assert not list((tmp_path / 'checkpoints').glob('ckpt*'))


def test_interrupted_run_goes_on_and_reports(program, graph_path, tmp_path):
  temporary, tmp_path = tmp_path / 'temporary', tmp_path / 'model'
  temporary.mkdir()
  # Without imitation, which takes as long to trace as the iterations.
  flags = _flags(graph_path, tmp_path, config='paper')
  process = subprocess.Popen(
      [*_SMALL, *flags, '--iterations=1000000'],
      env=fresh.environment_with_path() | {'TMPDIR': str(temporary)},
      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
  try:
    processes.wait_until(lambda: _is_learning(tmp_path), process)
    process.send_signal(signal.SIGTERM)  # Is passed on as a Ctrl-C.
    _, stderr = process.communicate(timeout=120)
  finally:
    process.kill()
    process.wait()
  assert process.returncode == 130, stderr
  [line] = stderr.strip().splitlines()
  assert 'Run the same command (without --restart) to go on' in line
  assert not list(temporary.iterdir())
  [newest] = sorted((tmp_path / 'checkpoints').glob('ckpt-*.index'))[-1:]
  reached = int(newest.name.split('.')[0].split('-')[1])
  assert f'after iteration {reached};' in line
  assert not (tmp_path / 'results.json').exists()

  result = program.run(*flags, f'--iterations={reached + 1}')
  assert result.code == 0, result.stderr
  assert result.stderr == ''
  assert f'Resuming after iteration {reached}.' in result.stdout
  assert 'branches on 2xP100 (simulated)' in result.stdout
  record = json.loads((tmp_path / 'results.json').read_text())
  assert record['graphs'][0]['placers']['gdp_train'][
      'iterations'] == reached + 1
  # It lacked the command and its limits.
  assert record['iterations'] == reached + 1
  assert record['command'].startswith(f'gdp_train --graph={graph_path} ')
  assert record['command'].endswith(
      ' --config=paper --network=one_shot --quiet=true')
  assert record['graphs'][0]['verdict'] in ' '.join(result.stdout.split())
  assert (tmp_path / 'policy' / 'saved_model.pb').exists()
  assert (tmp_path / 'plans' / 'branches.json').exists()


def test_a_measuring_search_survives_its_killers(tmp_path):
  model = tmp_path / 'model'
  # METIS alone would have dozens of placements measured.
  program = [
      *_SMALL[:2], warm.MARK + 'from placer_model.training import baselines\n'
      "baselines.NAMES = ('single_device', 'random')\n" + _SMALL[2]
  ]
  flags = [
      '--quiet', '--reward=measured', '--local_workers=2', '--rollouts=3',
      '--config=paper', '--iterations=1', f'--graph={_STEP}',
      f'--model_dir={model}'
  ]
  # As servers have it, so they may be forks.
  environment = fresh.environment_with_path() | {
      'LD_PRELOAD': str(native.LOOPBACK_PATH)
  }
  with subprocess.Popen([*program, *flags], env=environment,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL) as process:
    processes.wait_until(lambda: len(_measured(model)) >= 3, process)
    workers = _workers(process.pid)
    process.kill()
  assert len(workers) == 3 and processes.ended(workers)
  before = _measured(model)

  with subprocess.Popen([*program, *flags], env=environment, text=True,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE) as process:
    processes.wait_until(lambda: len(_workers(process.pid)) == 3, process)
    *_, server = _workers(process.pid)
    os.kill(server, signal.SIGKILL)
    assert processes.ended([server])
    stdout, stderr = process.communicate(timeout=200)
  assert process.returncode == 0 and stderr == ''
  assert 'dense_train_step on 2 local workers (measured)' in stdout
  after = _measured(model)
  assert after[:len(before)] == before and len(set(after)) == len(after)
  record = json.loads((model / 'results.json').read_text())
  assert all(p['valid'] for p in record['graphs'][0]['placers'].values())


def test_the_move_network_is_refined_and_then_asked(program, graph_path,
                                                    tmp_path):
  model = tmp_path / 'model'
  flags = _flags(graph_path, model, network='moves')
  result = program.run(*flags, '--init_policy=shipped', '--iterations=1')
  assert result.code == 0 and result.stderr == '', result.stderr
  said = ' '.join(result.stdout.split())
  assert 'gain per price' in said and 'x one device' in said
  flags.remove('--network=moves')  # The run in model_dir says which it is.
  result = program.run(*flags, '--iterations=2')
  assert result.code == 0, result.stderr
  assert 'Resuming after iteration 1.' in result.stdout
  policy = model / 'policy'
  assert {p.name for p in policy.iterdir()} == {'policy.json', 'weights.npz'}

  plan = tmp_path / 'plan.json'
  place = [
      sys.executable, '-P', '-m', 'gdp_grappler.bin.gdp', 'place', graph_path,
      '--cluster=2xP100', f'--policy={policy}', f'--output={plan}'
  ]
  placed = subprocess.run(place, env=fresh.environment_with_path(),
                          capture_output=True, text=True)
  assert placed.returncode == 0, placed.stderr
  assert json.loads(plan.read_text())['devices']
  (policy / 'weights.npz').write_bytes(b'PK')
  placed = subprocess.run([*place, '--quiet'],
                          env=fresh.environment_with_path(),
                          capture_output=True, text=True)
  assert placed.returncode == 2
  [line] = placed.stderr.strip().splitlines()
  assert 'cannot be used' in line and 'gdp_train' in line


def _measured(model_dir: pathlib.Path) -> list[str]:
  """Lines of the placements measured so far."""
  files = list(model_dir.glob('measurements/*'))
  return files[0].read_text().splitlines() if files else []


def _workers(process: int) -> list[int]:
  """Measuring processes of a process."""
  return list(filter(processes.runs, processes.children(process)))


def _is_learning(model_dir: pathlib.Path) -> bool:
  """Iterations leave TensorBoard events."""
  return any(p.stat().st_size > 1000 for p in model_dir.glob('tensorboard/*'))


def test_a_folder_that_cannot_be_made_is_told_before_the_work(
    program, tmp_path):
  (tmp_path / 'file').touch()
  done = program.run('--quiet', f'--model_dir={tmp_path}/file/x',
                     '--graph=none', '--cluster=2xP100')
  assert done.code == 2 and done.stderr.count('\n') == 1
  assert f'gdp_train: error: Cannot write {tmp_path}/file/x' in done.stderr
