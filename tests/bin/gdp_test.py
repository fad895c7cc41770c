"""What holds for every subcommand."""

from helpers import fresh


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
