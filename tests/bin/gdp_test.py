"""What holds for every subcommand."""

import os
import pathlib
import subprocess
import sys

import pytest

import gdp_grappler
from gdp_grappler.bin import gdp
from gdp_grappler.bin.commands import common
from helpers import fresh
from helpers import warm

_GRAPH = (pathlib.Path(__file__).parents[1] / 'testdata'
          / 'dense_train_step.pb')


def test_importing_it_leaves_the_environment_alone():
  # A program that imports `gdp` may go on to start others that are placed.
  code = ('import json, os; before = dict(os.environ); '
          'from gdp_grappler.bin import gdp; '
          'print(json.dumps(before == dict(os.environ)))')
  assert fresh.run_code(code).results is True


def test_the_program_switches_the_plugin_off():
  code = ('import os, sys; from gdp_grappler.bin import gdp; '
          'sys.argv = ["gdp", "cluster", "2xP100"]; assert gdp.main() == 0; '
          'print(os.environ["GDP_DISABLE"])')
  done = fresh.run_code(code)
  assert done.stdout.endswith('\n1\n'), done.stderr


def test_what_tensorflow_says_while_it_loads_is_not_shown(tmp_path):
  # This placer's module imports it.
  code = ('import sys; from gdp_grappler.bin import gdp; '
          f'sys.exit(gdp.run(["place", {str(_GRAPH)!r}, "--cluster=2xP100", '
          f'"--placer=m_etf", "--quiet", "--output={tmp_path}/plan.json"]))')
  with warm.cold():
    done = fresh.run_code(code)
  assert (done.code, done.stderr) == (0, '')


def test_an_interrupt_does_not_wait_for_the_background():
  """The program waited for a policy that loaded, once without an end."""
  code = """
import contextlib, sys, threading
from gdp_grappler.bin import gdp
from gdp_grappler.bin.commands import glossary
from gdp_grappler.placers.policy import eager_thread
eager_thread.as_placer_code = contextlib.nullcontext
def interrupted(arguments):
  eager_thread.start(threading.Event().wait)
  print('printed')
  raise KeyboardInterrupt
glossary.run = interrupted
sys.argv = ['gdp', 'glossary']
sys.exit(gdp.main())
"""
  done = fresh.run_code(code, timeout_s=60)
  assert (done.code, done.stdout) == (130, 'printed\n')
  assert done.stderr == 'gdp: interrupted\n'


def test_the_package_is_a_program_that_knows_its_version():
  done = subprocess.run([sys.executable, '-m', 'gdp_grappler', '--version'],
                        capture_output=True, text=True, check=True,
                        env=fresh.environment())
  assert done.stdout == f'gdp-grappler {gdp_grappler.__version__}\n'


@pytest.mark.parametrize('argv, quiet', [(['glossary'], False),
                                         (['glossary', '--quiet'], True),
                                         (['--quiet', 'glossary'], True)])
def test_quiet_stands_before_the_command_or_after_it(argv, quiet):
  assert gdp.parser().parse_args(argv).quiet == quiet


@pytest.mark.parametrize(
    'argv',
    [['--version'], ['glossary', '--version'], ['--version', 'glossary']])
def test_version_does_as_well(argv, capsys):
  with pytest.raises(SystemExit) as ended:
    gdp.run(argv)
  assert ended.value.code == 0
  assert capsys.readouterr().out == (
      f'gdp-grappler {gdp_grappler.__version__}\n')


def test_alone_it_prints_its_help(capsys):
  assert gdp.run([]) == 0
  assert 'usage: gdp' in capsys.readouterr().out


def test_a_misspelt_command_is_named(capsys):
  with pytest.raises(SystemExit) as ended:
    gdp.run(['--quiet', 'plce', 'graph.pb'])
  assert ended.value.code == 2
  assert ('there is no command "plce". Did you mean "place"?'
          in capsys.readouterr().err)


@pytest.mark.e2e
def test_a_missing_file_is_told_before_tensorflow_loads(tmp_path):
  """TensorFlow takes seconds to load."""
  (tmp_path / 'map.json').write_text('{"encoder": "GPU:0"}')
  done = fresh.run_code(f"""
import os, sys
from gdp_grappler.bin import gdp
os.chdir({str(tmp_path)!r})
for command in (['profile', 'none.pb', '--output=p.json'],
                ['diff', 'rnnlm-2', 'map.json', 'none.json'],
                ['report', 'rnnlm-2', '--plan=map.json', '--plan=none.json',
                 '--output=page.html'],
                ['place', 'rnnlm-2', '--cluster=2xP100', '--plan=none.json',
                 '--output=plan.json'],
                ['place', 'rnnlm-2', '--cluster=2xP100', '--profile=none.json',
                 '--output=plan.json'],
                ['show', 'rnnlm-2', '--plan=map.json', '--profile=none.json']):
  assert gdp.run([*command, '--quiet']) == 2
assert 'tensorflow' not in sys.modules
""")
  plan = 'gdp: error: Cannot read plan none.json: No such file'
  profile = 'gdp: error: Cannot read profile none.json: No such file'
  starts = ('gdp: error: Graph none.pb does not exist', plan, plan, plan,
            profile, profile)
  for line, start in zip(done.stderr.splitlines(), starts, strict=True):
    assert line.startswith(start)


@pytest.mark.parametrize('command, flag, meant',
                         [('place', '--sed=3', '--seed'),
                          ('show', '--ouput', '--output'),
                          ('cluster', '--jsn', '--json'),
                          ('verify', '--quite', '--quiet')])
def test_a_misspelt_flag_is_named(command, flag, meant, capsys):
  """It was once "unrecognized arguments", or another flag that is missing."""
  with pytest.raises(SystemExit) as ended:
    gdp.run([command, 'graph.pb', flag])
  assert ended.value.code == 2
  name = flag.partition('=')[0]
  assert capsys.readouterr().err == (
      f'gdp: error: gdp {command} has no flag {name}. Did you mean "{meant}"? '
      f'All: gdp {command} --help.\n')


def test_the_beginning_of_a_flag_is_one(capsys):
  assert gdp.run(['cluster', '2xP100', '--js', '--qui']) == 0
  assert capsys.readouterr().out.startswith('{')


@pytest.mark.parametrize('redirection, code, says', [
    ('> /dev/full', 2, 'gdp: error: input or output: No space left on device.'),
    ('2>&-', 0, ''),
    ('>&-', 0, ''),
])
def test_a_stream_that_takes_nothing_is_no_traceback(redirection, code, says):
  done = subprocess.run(
      f'{sys.executable} -m gdp_grappler.bin.gdp --quiet glossary '
      f'{redirection}', shell=True, check=False, capture_output=True, text=True)
  assert (done.returncode, done.stderr.strip()) == (code, says)


@pytest.mark.parametrize('is_read', [False, True])
def test_an_error_that_cannot_be_written_keeps_its_exit_code(is_read):
  """Python once tried again at the end, and the code was 120."""
  if is_read:
    stderr = os.open('/dev/full', os.O_WRONLY)
  else:
    reader, stderr = os.pipe()
    os.close(reader)
  # Without buffers, Python would not try again.
  environment = {**os.environ}
  environment.pop('PYTHONUNBUFFERED', None)
  done = subprocess.run([
      sys.executable, '-m', 'gdp_grappler.bin.gdp', '--quiet', 'place', 'x.pb',
      '--cluster=2xP100'
  ], stderr=stderr, env=environment, check=False)
  os.close(stderr)
  assert done.returncode == 2


@pytest.mark.parametrize('argv', [
    ['simulate', 'x' * 300, '--cluster=2xP100', '--plan=plan.json'],
    ['place', 'graph.pb', '--cluster=2xP100', f'--output={"x" * 300}/a.json'],
], ids=['graph', 'output'])
def test_a_name_that_is_too_long_is_bad_input(argv, capsys):
  assert gdp.run(['--quiet', *argv]) == 2
  error = capsys.readouterr().err
  assert error.startswith('gdp: error: ') and error.count('\n') == 1
  assert 'File name too long' in error


# Root may write everywhere but there.
@pytest.mark.parametrize('path', ['/proc/self/x', 'file/x'])
@pytest.mark.parametrize('argv', [
    ['place', 'GRAPH', '--cluster=2xP100', '--output=PATH.json'],
    ['place', 'GRAPH', '--cluster=2xP100', '--output=PATH.pb'],
    ['show', 'GRAPH', '--plan=p.json', '--output=PATH.json'],
    ['simulate', 'GRAPH', '--plan=p.json', '--trace=PATH.json'],
    ['simulate', 'GRAPH', '--plan=p.json', '--tensorboard=PATH'],
    ['simulate', 'GRAPH', '--plan=p.json', '--node_data=PATH.json'],
    ['report', 'GRAPH', '--plan=p.json', '--output=PATH.html'],
    ['profile', 'GRAPH', '--output=PATH.json'],
    ['calibrate', '--output=PATH.json'],
    ['calibrate', '--cache_dir=PATH'],
    ['cluster', '2xP100', '--output=PATH.json'],
], ids=lambda argv: f'{argv[0]}{argv[-1]}')
def test_an_output_that_cannot_be_written_is_told_before_the_work(
    argv, path, tmp_path, monkeypatch, capsys):
  """A search of minutes was lost."""
  monkeypatch.chdir(tmp_path)
  pathlib.Path('file').touch()
  monkeypatch.setattr(common, 'load_tensorflow', pytest.fail)
  given = [a.replace('PATH', path).replace('GRAPH', str(_GRAPH)) for a in argv]
  assert gdp.run(['--quiet', *given]) == 2
  error = capsys.readouterr().err
  assert error.startswith(f'gdp: error: Cannot write {path}'), error
  assert error.count('\n') == 1 and error.endswith('Name another place.\n')
