import subprocess
import sys

import pytest

_PROGRAM = """
import pathlib, sys
from placer_model.bin import console as console_lib
console = console_lib.Console(force_terminal=False)
for _ in range(10_000):
  console.print('a line of a table')
pathlib.Path(sys.argv[1]).write_text('written')
"""


def test_standard_output_stays_if_nobody_reads_standard_error(tmp_path):
  """The JSON of `gdp_bench --json` was lost."""
  program = _PROGRAM.replace('force_terminal=False', 'stderr=True')
  with subprocess.Popen([
      sys.executable, '-P', '-c', program + "print('json')",
      tmp_path / 'written'
  ], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
    process.stderr.close()
    assert process.stdout.read() == b'json\n'
  assert process.returncode == 0


@pytest.mark.parametrize('lines', [0, 1])
def test_a_program_goes_on_if_nobody_reads_its_output(tmp_path, lines):
  written = tmp_path / 'written'
  with subprocess.Popen([sys.executable, '-P', '-c', _PROGRAM, written],
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE) as process:
    for _ in range(lines):
      assert process.stdout.readline() == b'a line of a table\n'
    process.stdout.close()
    assert process.stderr.read() == b''
  assert process.returncode == 0
  assert written.read_text() == 'written'
