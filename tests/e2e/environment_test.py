"""The environment variables, and installations that do not fit."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from helpers import fresh

pytestmark = pytest.mark.e2e
_SOURCE = pathlib.Path(__file__).parents[2] / 'gdp_grappler/plugin/loader.c'
_START = '''
import json, sys
import tensorflow as tf
ours = sorted(m for m in sys.modules if m.startswith('gdp_grappler'))
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices('CPU')[0],
    [tf.config.LogicalDeviceConfiguration()] * 2)

@tf.function
def function(x):
  for i in range(20):
    x = tf.sin(tf.matmul(x, x) + i)
  return tf.reduce_sum(x)

def used():
  from tensorflow.python.eager import context
  context.context().enable_graph_collection()
  function(tf.ones((4, 4)))
  graphs = context.context().export_run_metadata().function_graphs
  return sorted({n.device[-5:] for g in graphs for p in g.partition_graphs
                 for n in p.node})
'''
_REPORT = '''
shown = tf.config.optimizer.get_experimental_options().get('gdp_placement')
print(json.dumps({'ours': ours, 'shown': shown, 'used': used()}))
'''
_RANDOM = '{"placer": "random", "keep_best": false}'
# Each of these texts runs in a fork of an interpreter that has run `_START`.
_CODE_WINS = """
by_environment = used()
shown = tf.config.optimizer.get_experimental_options()['gdp_placement']
tf.config.optimizer.set_experimental_options({'gdp_placement': False})
print(json.dumps({'shown': shown, 'used': by_environment, 'off': used()}))
"""
_HALVES = 'import os\nos.environ["GDP_PLACEMENT"] = "1"' + _REPORT
_MISSING = """
import pathlib
from gdp_grappler import native
native.LIB_DIR = pathlib.Path('/nonexistent')
""" + _REPORT
_OF_ANOTHER = """
from gdp_grappler import native
native.built_for_tensorflow = lambda: '2.20.0'
""" + _REPORT
_SWITCHED_ON = (_CODE_WINS, _HALVES, _MISSING, _OF_ANOTHER)
_FORKS = """
import os
for code in CASES:
  for stream in (sys.stdout, sys.stderr):
    print('CASE', file=stream, flush=True)
  if not os.fork():
    exec(code)
    sys.stdout.flush()
    os._exit(0)
  assert not os.wait()[1]
"""


@pytest.fixture(name='off', scope='module')
def _off():
  """Runs a program that only tries to set wrong options."""
  return fresh.run_code(_START + """
before = tf.config.optimizer.get_experimental_options()
used_before = used()
messages = []
for options in ({'gdp_placment': True}, {'gdp_placement': {'sed': 1}},
                {'gdp_placement': {'mode': 'aply'}}, {'gdp_placement': 1}):
  try:
    tf.config.optimizer.set_experimental_options(
        {'debug_stripper': True, **options})
  except ValueError as error:
    messages.append(str(error))
print(json.dumps({
    'ours': ours, 'used': used_before, 'before': before, 'messages': messages,
    'after': tf.config.optimizer.get_experimental_options()}))
""")


@pytest.fixture(name='switched_on', scope='module')
def _switched_on():
  """Returns the finished run of each text of `_SWITCHED_ON`."""
  finished = fresh.run_code(f'{_START}CASES = {_SWITCHED_ON!r}\n{_FORKS}',
                            GDP_PLACEMENT=_RANDOM, GDP_DISABLE='0')
  streams = (finished.stdout, finished.stderr)
  parts = zip(*(stream.split('CASE\n')[1:] for stream in streams), strict=True)
  return {
      code: fresh.Finished(finished.code, *part)
      for code, part in zip(_SWITCHED_ON, parts, strict=True)
  }


def test_switched_off_it_stays_out_of_the_way(off):
  assert off.notices == []
  assert off.results['used'] == ['CPU:0']
  assert 'gdp_placement' not in off.results['before']
  assert 'gdp_grappler.plugin.hook' in off.results['ours']
  heavy = {
      'native', 'graph', 'placers', 'plugin.host', 'plugin.option',
      'plugin.library', 'plugin.optimizer'
  }
  assert not heavy & {
      name.removeprefix('gdp_grappler.') for name in off.results['ours']
  }


def test_option_is_checked_before_anything_is_set(off):
  for message, hint in zip(off.results['messages'],
                           ('mean "gdp_placement"', 'mean "seed"',
                            'mean "apply"', 'valid are True, False'),
                           strict=True):
    assert hint in message
  assert off.results['after'] == off.results['before']


def test_disabled():
  finished = fresh.run_code(
      _START + "tf.config.optimizer.set_experimental_options("
      "{'gdp_placement': True})\n" + _REPORT, GDP_DISABLE='1',
      GDP_PLACEMENT='1')
  assert finished.notices == []
  assert finished.results == {'ours': [], 'shown': None, 'used': ['CPU:0']}


def test_environment_switches_on_and_code_wins(switched_on):
  results = switched_on[_CODE_WINS].results
  assert results['shown'] == json.loads(_RANDOM)
  assert results['used'] == ['CPU:0', 'CPU:1']
  assert results['off'] == ['CPU:0']


def test_two_halves_of_a_cpu_are_not_faster(switched_on):
  results = switched_on[_HALVES].results
  assert results['shown'] is True
  assert results['used'] == ['CPU:0']


def test_bad_environment_costs_one_line():
  finished = fresh.run_code(_START + _REPORT,
                            GDP_PLACEMENT='{"placer": "metsi"}')
  assert finished.results['used'] == ['CPU:0']
  assert len(finished.notices) == 1
  assert 'GDP_PLACEMENT is ignored' in finished.notices[0]
  assert 'mean "metis"' in finished.notices[0]


def test_missing_library_costs_one_line(switched_on):
  finished = switched_on[_MISSING]
  assert finished.results['used'] == ['CPU:0']
  assert len(finished.notices) == 1
  assert 'libraries are missing' in finished.notices[0]
  assert 'pip install' in finished.notices[0]


def test_library_for_another_tensorflow_costs_one_line(switched_on):
  finished = switched_on[_OF_ANOTHER]
  assert finished.results['used'] == ['CPU:0']
  assert len(finished.notices) == 1
  assert 'built for TensorFlow 2.20.0' in finished.notices[0]


def test_loader_for_another_tensorflow_costs_one_line(tmp_path):
  compiler = shutil.which(os.environ.get('CC', 'gcc'))
  assert compiler, 'a C compiler is needed to build the package as well'
  loader = tmp_path / 'libother_loader.so'
  subprocess.run([
      compiler, '-fPIC', '-shared', _SOURCE, '-o', loader, '-ldl',
      '-DGDP_TENSORFLOW_MINOR="2.2"'
  ], check=True)
  finished = fresh.run_code(_START + _REPORT,
                            TF_PLUGGABLE_DEVICE_LIBRARY_PATH=str(loader))
  assert finished.results['used'] == ['CPU:0']
  lines = [l for l in finished.notices if 'built for TensorFlow 2.2 ' in l]
  assert len(lines) == 1 and 'pip install' in lines[0]


def test_program_without_python_is_left_alone(tmp_path):
  """For example a C++ server, which loads the plugin but has no interpreter."""
  compiler = shutil.which(os.environ.get('CC', 'gcc'))
  loader, server = tmp_path / 'libloader.so', tmp_path / 'server'
  subprocess.run([
      compiler, '-fPIC', '-shared', _SOURCE, '-o', loader, '-ldl',
      '-DGDP_TENSORFLOW_MINOR="2.21"'
  ], check=True)
  (tmp_path / 'server.c').write_text('''
      #include <dlfcn.h>
      int main(int argc, char** argv) {
        return argc == 2 && dlopen(argv[1], RTLD_NOW) ? 7 : 1;
      }''')
  subprocess.run([compiler, tmp_path / 'server.c', '-o', server, '-ldl'],
                 check=True)
  done = subprocess.run([server, loader], capture_output=True, check=False)
  assert (done.returncode, done.stdout, done.stderr) == (7, b'', b'')
