"""Tests of how messages spell arguments."""

import json

import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.bin import gdp


@pytest.mark.parametrize('name, value, python, flag', [
    ('cluster', None, 'cluster', '--cluster'),
    ('cluster', '2xP100', "cluster='2xP100'", '--cluster=2xP100'),
    ('shape', {'x': (8, 3)}, "shape={'x': (8, 3)}", '--shape=x=8,3'),
    ('max_memory', {'GPU:0': '1GB', 'CPU': '2GB'
                   }, "max_memory={'GPU:0': '1GB', 'CPU': '2GB'}",
     '--max_memory=GPU:0=1GB,CPU=2GB'),
])
def test_an_argument_of_python_is_a_flag_of_a_command(name, value, python,
                                                      flag):
  assert spelling.argument(name, value) == python
  with spelling.as_flags():
    assert spelling.argument(name, value) == flag
  assert spelling.argument(name, value) == python


def test_a_flag_that_a_command_lacks_is_said_to_be_of_another():
  """gdp_bench advised --signature, which it does not have."""
  with spelling.as_flags('gdp_bench', ['max_memory', 'tasks']):
    assert spelling.argument('max_memory') == '--max_memory'
    assert spelling.argument(
        'signature',
        'one') == ('--signature=one (a flag of gdp, not of gdp_bench)')


def test_commands_alone_say_that_nothing_was_written():
  assert spelling.with_end('No.') == 'No.'
  with spelling.as_flags():
    assert spelling.with_end('No.') == 'No. Nothing was written.'


def test_a_process_spells_as_the_one_that_started_it(monkeypatch):
  monkeypatch.setattr(spelling, '_inherited', None)
  assert spelling.handed_over() is None
  with spelling.as_flags('gdp_bench', ['tasks']):
    state = json.loads(json.dumps(spelling.handed_over()))
  spelling.inherit(state)
  assert spelling.argument('tasks') == '--tasks'
  with spelling.as_flags():
    assert spelling.argument('signature') == '--signature'
  assert spelling.handed_over() == ('gdp_bench', ['tasks'])


def test_python_hears_of_arguments_and_a_command_of_flags(tmp_path, capsys):
  """Errors of the Python API once named flags of the command line."""
  plan = tmp_path / 'map.json'
  plan.write_text(json.dumps({'layer': 'GPU:0'}))
  with pytest.raises(errors.PlanError, match="such as cluster='2xP100'"):
    gdp_grappler.load_plan(plan, 'rnnlm-2')
  assert gdp.run(['show', 'rnnlm-2', f'--plan={plan}']) == 2
  assert 'such as --cluster=2xP100.' in capsys.readouterr().err
