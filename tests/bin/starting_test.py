import contextlib
import importlib.metadata
import os
import runpy
import signal
import subprocess
import sys

import pytest

from gdp_grappler.bin import starting

_MODULE = """
import sys, time
if {importing}:
  print('ready', flush=True)
  time.sleep(600)
def main():
  try:
    print('ready', flush=True)
    time.sleep(600)
  except KeyboardInterrupt:
    print('caught')
  return 7
"""

_LATE = """
import atexit, os
def end(write=os.write, kill=os.kill, process=os.getpid()):
  kill(process, {number})
  write(1, b'ended\\n')
class Late:
  def __del__(self, end=end):
    end()
if {when!r} == 'atexit':
  atexit.register(end)
else:
  late = Late()
def main():
  return 7
"""


def _interrupted(folder, importing, before='', within_s=60, by=signal.SIGINT):
  (folder / 'slow.py').write_text(_MODULE.format(importing=importing))
  code = (f'import signal, sys; sys.path.insert(0, {str(folder)!r}); {before}'
          'from gdp_grappler.bin import starting; '
          "sys.exit(starting.call('gdp', 'slow', 'main'))")
  with subprocess.Popen([sys.executable, '-P', '-c', code], text=True,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE) as process:
    assert process.stdout.readline() == 'ready\n'
    process.send_signal(by)
    try:
      out, err = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
      process.kill()
      process.communicate()
      return None
  return process.returncode, out, err


@pytest.mark.parametrize('by', [signal.SIGINT, signal.SIGTERM])
def test_an_import_that_is_interrupted_is_one_line(tmp_path, by):
  ended = _interrupted(tmp_path, True, by=by)
  assert ended == (130, '', 'gdp: interrupted\n')


@pytest.mark.parametrize('by', [signal.SIGINT, signal.SIGTERM])
def test_afterwards_the_program_is_told(tmp_path, by):
  assert _interrupted(tmp_path, False, by=by) == (7, 'caught\n', '')


@pytest.mark.parametrize('when', ['atexit', 'unloading'])
@pytest.mark.parametrize('by', [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_after_the_result_does_nothing(tmp_path, by, when):
  """The signal killed the process: exit code 130 without a line."""
  (tmp_path / 'late.py').write_text(_LATE.format(number=int(by), when=when))
  code = (f'import sys; sys.path.insert(0, {str(tmp_path)!r}); '
          'from gdp_grappler.bin import starting; '
          "sys.exit(starting.call('gdp', 'late', 'main'))")
  done = subprocess.run([sys.executable, '-P', '-c', code], timeout=60,
                        capture_output=True, text=True, check=False)
  assert (done.returncode, done.stdout, done.stderr) == (7, 'ended\n', '')


def test_in_the_background_it_can_be_ended(tmp_path):
  ignored = 'signal.signal(signal.SIGINT, signal.SIG_IGN); '
  ended = _interrupted(tmp_path, False, ignored, by=signal.SIGTERM)
  assert ended == (7, 'caught\n', '')


def test_what_ignores_interrupts_goes_on(tmp_path):
  ignored = 'signal.signal(signal.SIGINT, signal.SIG_IGN); '
  assert _interrupted(tmp_path, True, ignored, within_s=2) is None


@pytest.mark.parametrize('by', [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_is_swallowed_comes_afterwards(by):
  """TensorFlow loaded on, and the search began."""
  before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
  starting.end_as_interrupted()
  try:
    with pytest.raises(KeyboardInterrupt):
      with starting.interrupts_kept():
        with contextlib.suppress(KeyboardInterrupt):
          signal.raise_signal(by)
    assert signal.getsignal(signal.SIGINT) is before[0]
  finally:
    signal.signal(signal.SIGTERM, before[1])


def test_an_interrupt_hides_the_error_that_it_caused():
  """The error was shown in place of "interrupted"."""
  with pytest.raises(KeyboardInterrupt):
    with starting.interrupts_kept():
      try:
        signal.raise_signal(signal.SIGINT)
      except KeyboardInterrupt:
        raise ImportError from None


@pytest.mark.parametrize('name',
                         ['gdp', 'gdp_bench', 'gdp_pretrain', 'gdp_train'])
def test_programs_begin_there(name):
  scripts = importlib.metadata.entry_points(group='console_scripts')
  assert scripts[name].value.endswith(f'bin.starting:{name}')
  assert callable(scripts[name].load())


@pytest.mark.parametrize('encoding, said', [
    ('ascii', b'caf\\xe9 \\u6a21\n'),
    ('latin-1', b'caf\xe9 \\u6a21\n'),
    ('ascii:replace', b'caf? ?\n'),
])
def test_every_text_can_be_printed(encoding, said):
  """Once `gdp place` ended with a traceback after it had written the plan."""
  code = ('from gdp_grappler.bin import starting; starting.prepare_streams(); '
          'print("caf\\xe9 \\u6a21")')
  done = subprocess.run([sys.executable, '-P', '-c', code], check=True,
                        capture_output=True, timeout=60,
                        env={**os.environ, 'PYTHONIOENCODING': encoding})
  assert done.stdout == said


def test_a_closed_stream_drops_all_text(monkeypatch):
  monkeypatch.setattr(sys, 'stdout', None)
  starting.prepare_streams()
  print('x', flush=True)
  sys.stdout.close()


def test_the_package_as_a_program_begins_there(monkeypatch):
  """SIGTERM of `python -m gdp_grappler` left temporary files behind."""
  monkeypatch.setattr(starting, 'gdp', lambda: 7)
  with pytest.raises(SystemExit) as ended:
    runpy.run_module('gdp_grappler', run_name='__main__')
  assert ended.value.code == 7
