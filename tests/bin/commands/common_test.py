import argparse
import contextlib
import importlib
import pathlib
import signal
from unittest import mock

import pytest

import gdp_grappler
from gdp_grappler.bin import gdp
from gdp_grappler.bin.commands import common
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator
from helpers import graph_defs


@pytest.mark.parametrize('kind, texts, remedy', [
    (common.positive, ['0', '-3', '1e9', 'x', ''], 'a whole number of 1 or'),
    (common.not_negative, ['-1', '1.5', 'x'], 'a whole number of 0 or'),
    (common.seconds, ['0', '-1', 'nan', 'inf', 'x'], 'a number of more than 0'),
])
def test_numbers_out_of_range(kind, texts, remedy):
  for text in texts:
    with pytest.raises(argparse.ArgumentTypeError,
                       match=f'it is {text!r}; give {remedy}'):
      kind(text)
  assert (common.positive('1'), common.not_negative('0')) == (1, 0)
  assert (common.seconds('1e9'), common.seconds('1e-3')) == (1e9, 1e-3)


def test_results_have_no_commands_for_the_terminal(capsys):
  common.say('a\x1b[31mb\u202e\ud800\x07\n\u00e9')
  assert capsys.readouterr().out == 'a?[31mb???\n\u00e9\n'


@pytest.mark.parametrize('name, said', [
    ('x.txt', 'Cannot tell what to write'),
    ('no/x.json', 'its folder does not exist'),
    ('folder.pb', 'it is a folder'),
])
def test_outputs_that_cannot_be_written(tmp_path, capsys, name, said):
  (tmp_path / 'folder.pb').mkdir()
  assert gdp.run(
      ['place', 'g.pb', '--cluster=2xP100', f'--output={tmp_path / name}']) == 2
  assert said in capsys.readouterr().err


def test_outputs_are_not_made_before_the_work(tmp_path):
  common.check_output(str(tmp_path / 'x'), argparse.Namespace())
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('command', [
    'place {0} --cluster=2xP100 --output={1}',
    'place g.pb --cluster=2xP100 --plan={0} --output={1}',
    'place g.pb --cluster=2xP100 --profile={0} --output={1}',
    'show g.pb --plan={0} --output={1}', 'simulate {0} --plan=p --trace={1}',
    'simulate g.pb --plan={0} --node_data={1}', 'profile {0} --output={1}'
])
def test_a_result_does_not_replace_what_is_read(tmp_path, capsys, command):
  """The plan replaced the graph of a user who gave its file as --output."""
  path, link = tmp_path / 'x.json', tmp_path / 'link.json'
  path.write_text('{}')
  link.symlink_to(path)
  assert gdp.run(command.format(path, link).split()) == 2
  assert f'Cannot write {link}: it is the ' in capsys.readouterr().err
  assert path.read_text() == '{}'


@pytest.mark.parametrize('command', [
    'place {0} --cluster=2xP100 --output={0}/saved_model.pb',
    'place {0} --cluster=2xP100 --output={0}/fingerprint.pb',
    'place {0} --cluster=2xP100 --output={0}/fit_3_0a1b2c.pb',
    'place {0} --cluster=2xP100 --output={0}/assets/words.json',
    'place g.pb --cluster=2xP100 --policy={0} --output={0}/policy.json',
    'show {0} --plan=p.json --output={0}/assets/words.json',
])
def test_a_result_does_not_replace_a_file_of_a_folder_that_is_read(
    tmp_path, capsys, command):
  """The placed graph replaced the SavedModel of a user, who lost it."""
  (tmp_path / 'assets').mkdir()
  command = command.format(tmp_path)
  path = pathlib.Path(command.rpartition('=')[2])
  path.write_text('{}')
  assert gdp.run(command.split()) == 2
  assert f'Cannot write {path}: it is a file of the ' in capsys.readouterr().err
  assert path.read_text() == '{}'


@pytest.mark.parametrize('name', [
    'plan.json',
    'placed.pb',
    'out.pbtxt',
    'plans/saved_model.pb',
    'plans/fit_3_0a1b2c.pb',
])
def test_results_may_be_in_the_folder_that_is_read(tmp_path, name):
  """A command could not replace the placed graph of its first run."""
  path = tmp_path / name
  path.parent.mkdir(exist_ok=True)
  path.touch()
  arguments = argparse.Namespace(graph=str(tmp_path), policy=str(tmp_path))
  common.check_output(path, arguments)


def test_a_cluster_may_be_changed_in_place_but_a_calibration_may_not(
    tmp_path, monkeypatch, capsys):
  """The cluster replaced the calibration, which takes minutes to measure."""
  monkeypatch.chdir(tmp_path)
  assert gdp.run(['cluster', '2xP100', '--output=x.json']) == 0
  assert gdp.run(['cluster', 'x.json', '--output=x.json']) == 0
  assert gdp.run(
      ['cluster', '2xP100', '--calibration=x.json', '--output=x.json']) == 2
  assert 'it is the calibration that is read' in capsys.readouterr().err


@pytest.mark.parametrize('command', [
    'show g.pb --plan=p.json --output',
    'simulate g.pb --plan=p.json --trace',
    'simulate g.pb --plan=p.json --node_data',
    'profile g.pb --output',
    'calibrate --output',
])
def test_json_has_no_name_of_another_format(capsys, command):
  """A map of layers was written as map.pb, which no command reads."""
  with pytest.raises(SystemExit):
    gdp.parser().parse_args(f'{command}=map.pb'.split())
  assert "'map.pb'; end the name of" in capsys.readouterr().err
  gdp.parser().parse_args(f'{command}=/dev/stdout'.split())


@pytest.mark.parametrize('trace', ['x.json', './x.graph.json'])
def test_results_do_not_replace_each_other(tmp_path, monkeypatch, capsys,
                                           trace):
  """The node data replaced the trace, and the command said nothing."""
  monkeypatch.chdir(tmp_path)
  assert gdp.run([
      'simulate', 'g.pb', '--plan=p.json', f'--trace={trace}',
      '--node_data=x.json'
  ]) == 2
  assert 'would write the same file' in capsys.readouterr().err


def test_a_terminal_may_be_read_and_written():
  arguments = argparse.Namespace(graph='/dev/null')
  common.check_output('/dev/null', arguments)


def test_an_interrupt_while_tensorflow_loads_is_not_lost(monkeypatch):
  """An import dropped it, and the command went on."""

  def load(unused_name):
    with contextlib.suppress(KeyboardInterrupt):
      signal.raise_signal(signal.SIGINT)
    return mock.MagicMock()

  monkeypatch.setattr(importlib, 'import_module', load)
  with pytest.raises(KeyboardInterrupt):
    common.load_tensorflow()


def test_arguments_become_a_request():
  parser = argparse.ArgumentParser()
  common.add_priced_graph(parser)
  arguments = parser.parse_args(
      ['g.pb', '--cluster=x', '--batch_size=3', '--trip_count=4'])
  request = common.request(arguments)
  assert (request.graph, request.batch_size, request.trip_count,
          request.profile) == ('g.pb', 3, 4, '')


def test_signature_and_shapes():
  parser = argparse.ArgumentParser()
  common.add_priced_graph(parser)
  request = common.request(
      parser.parse_args([
          'model', '--cluster=x', '--signature=serve', '--shape=x=32,8',
          '--shape=scale=', '--pins=ignore'
      ]))
  assert (request.signature, request.pins) == ('serve', 'ignore')
  assert request.shapes == (('x', (32, 8)), ('scale', ()))


@pytest.mark.parametrize('text', ['32,8', 'x=a', 'x=0', '=8', 'x=8,'])
def test_bad_shapes(text):
  with pytest.raises(argparse.ArgumentTypeError, match='input=32,224,224,3'):
    common.shape(text)


def test_every_violation_is_a_warning(capsys):
  violations = tuple(
      placement_lib.Violation('memory', f'too much {i}') for i in range(2))
  common.warn(evaluator.Evaluation(1., (), violations, simulated=True))
  assert capsys.readouterr().err == ('gdp: warning: too much 0\n'
                                     'gdp: warning: too much 1\n')


@pytest.mark.parametrize('command', [
    ['place', 'rnnlm-2@tiny', '--output=plan.json'],
    ['show', 'rnnlm-2@tiny', '--plan=plan.json'],
])
@pytest.mark.parametrize('given, said', [
    (['--cluster=2xP1000'], 'Did you mean "2xP100"'),
    (['--cluster=2xP100', '--max_memory=GPU=big'], "'big' for GPU is no size"),
    (['--cluster=none.json'], 'Cannot read cluster file none.json'),
])
def test_a_wrong_cluster_is_told_before_tensorflow_is_loaded(
    command, given, said, monkeypatch, capsys):
  """The error came after seconds, of which all were TensorFlow's."""

  def load():
    pytest.fail('TensorFlow was loaded.')

  monkeypatch.setattr(common, 'load_tensorflow', load)
  assert gdp.run([*command, *given]) == 2
  assert said in capsys.readouterr().err


def test_a_plan_relaxes_rules_for_itself_alone(tmp_path):
  """The map dropped the requests by tf.device for the plan after it, too."""

  def make():
    import tensorflow as tf
    given = tf.compat.v1.placeholder(tf.float32, [8])
    with tf.device('/GPU:1'):
      tf.exp(given)

  graph, plan = str(tmp_path / 'graph.pb'), str(tmp_path / 'plan.json')
  layers = tmp_path / 'map.json'
  with open(graph, 'wb') as file:
    file.write(graph_defs.built(make).SerializeToString())
  gdp_grappler.place(graph, '2xP100', placer='single_device').save(plan)
  layers.write_text('{"Exp": "GPU:0"}')
  arguments = gdp.parser().parse_args(
      ['diff', graph, '--cluster=2xP100',
       str(layers), plan])
  mapped, planned = common.planned_steps(arguments, [str(layers), plan])
  assert mapped.graph.may_round and not mapped.graph.user_pins.any()
  assert not planned.graph.may_round and planned.graph.user_pins.any()
