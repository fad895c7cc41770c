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
