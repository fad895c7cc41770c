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


def test_switched_off_it_stays_out_of_the_way():
  finished = fresh.run_code(_START + _REPORT)
  assert finished.notices == []
  assert finished.results['used'] == ['CPU:0']
  assert finished.results['shown'] is None
  assert 'gdp_grappler.plugin.hook' in finished.results['ours']
  heavy = {
      'native', 'graph', 'placers', 'plugin.host', 'plugin.option',
      'plugin.library', 'plugin.optimizer'
  }
  assert not heavy & {
      name.removeprefix('gdp_grappler.') for name in finished.results['ours']
  }


def test_disabled():
  finished = fresh.run_code(
      _START + "tf.config.optimizer.set_experimental_options("
      "{'gdp_placement': True})\n" + _REPORT, GDP_DISABLE='1',
      GDP_PLACEMENT='1')
  assert finished.notices == []
  assert finished.results == {'ours': [], 'shown': None, 'used': ['CPU:0']}


def test_disable_0_means_enabled():
  finished = fresh.run_code(_START + _REPORT, GDP_DISABLE='0')
  assert finished.results['ours']


@pytest.mark.parametrize(
    'text, shown, used',
    [
        (_RANDOM, json.loads(_RANDOM), ['CPU:0', 'CPU:1']),
        ('1', True, ['CPU:0']),  # Two halves of a CPU are not faster.
        ('0', False, ['CPU:0']),
    ])
def test_environment_switches_on(text, shown, used):
  finished = fresh.run_code(_START + _REPORT, GDP_PLACEMENT=text)
  assert finished.results['shown'] == shown
  assert finished.results['used'] == used


def test_code_wins_over_the_environment():
  finished = fresh.run_code(
      _START + "tf.config.optimizer.set_experimental_options("
      "{'gdp_placement': False})\n" + _REPORT, GDP_PLACEMENT=_RANDOM)
  assert finished.results['used'] == ['CPU:0']


@pytest.mark.parametrize('text, hint',
                         [('yes', "'yes' is neither"),
                          ('{"placer": "metsi"}', 'mean "metis"')])
def test_bad_environment_costs_one_line(text, hint):
  finished = fresh.run_code(_START + _REPORT, GDP_PLACEMENT=text)
  assert finished.results['used'] == ['CPU:0']
  assert len(finished.notices) == 1
  assert 'GDP_PLACEMENT is ignored' in finished.notices[0]
  assert hint in finished.notices[0]


def test_option_is_checked_before_anything_is_set():
  code = _START + '''
set_options = tf.config.optimizer.set_experimental_options
messages = []
for options in ({'gdp_placment': True}, {'gdp_placement': {'sed': 1}},
                {'gdp_placement': {'mode': 'aply'}}, {'gdp_placement': 1}):
  try:
    set_options({'debug_stripper': True, **options})
  except ValueError as error:
    messages.append(str(error))
options = tf.config.optimizer.get_experimental_options()
print(json.dumps({'messages': messages, 'options': options}))
'''
  results = fresh.run_code(code).results
  for message, hint in zip(results['messages'],
                           ('mean "gdp_placement"', 'mean "seed"',
                            'mean "apply"', 'valid are True, False'),
                           strict=True):
    assert hint in message
  assert not {'debug_stripper', 'gdp_placement'} & set(results['options'])


def test_missing_library_costs_one_line():
  finished = fresh.run_code(
      _START + '''
import pathlib
from gdp_grappler import native
native.LIB_DIR = pathlib.Path('/nonexistent')
''' + _REPORT, GDP_PLACEMENT=_RANDOM)
  assert finished.results['used'] == ['CPU:0']
  assert len(finished.notices) == 1
  assert 'libraries are missing' in finished.notices[0]
  assert 'pip install' in finished.notices[0]


def test_library_for_another_tensorflow_costs_one_line():
  finished = fresh.run_code(
      _START + '''
from gdp_grappler import native
native.built_for_tensorflow = lambda: '2.20.0'
''' + _REPORT, GDP_PLACEMENT=_RANDOM)
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
  """A C++ server: the loader is there, the interpreter is not."""
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
