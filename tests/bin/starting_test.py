import importlib.metadata
import signal
import subprocess
import sys

import pytest

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


def _interrupted(folder, importing, before='', within_s=60):
  (folder / 'slow.py').write_text(_MODULE.format(importing=importing))
  code = (f'import signal, sys; sys.path.insert(0, {str(folder)!r}); {before}'
          'from gdp_grappler.bin import starting; '
          "sys.exit(starting.call('gdp', 'slow', 'main'))")
  with subprocess.Popen([sys.executable, '-P', '-c', code], text=True,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE) as process:
    assert process.stdout.readline() == 'ready\n'
    process.send_signal(signal.SIGINT)
    try:
      out, err = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
      process.kill()
      process.communicate()
      return None
  return process.returncode, out, err


def test_an_import_that_is_interrupted_is_one_line(tmp_path):
  assert _interrupted(tmp_path, True) == (130, '', 'gdp: interrupted\n')


def test_afterwards_the_program_is_told(tmp_path):
  assert _interrupted(tmp_path, False) == (7, 'caught\n', '')


def test_what_ignores_interrupts_goes_on(tmp_path):
  ignored = 'signal.signal(signal.SIGINT, signal.SIG_IGN); '
  assert _interrupted(tmp_path, True, ignored, within_s=2) is None


@pytest.mark.parametrize('name',
                         ['gdp', 'gdp_bench', 'gdp_pretrain', 'gdp_train'])
def test_programs_begin_there(name):
  scripts = importlib.metadata.entry_points(group='console_scripts')
  assert scripts[name].value.endswith(f'bin.starting:{name}')
  assert callable(scripts[name].load())
