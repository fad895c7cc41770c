"""The entries of the table of placers, and placers made by name."""

import importlib
import pathlib
import re
import runpy
from unittest import mock

import pytest

from gdp_grappler import errors
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer_table
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import shipped_policy
from helpers import fresh
from helpers import warm

_TOP = pathlib.Path(__file__).parents[2]
_ENTRIES = placer_table.table().values()
_each = pytest.mark.parametrize('entry', _ENTRIES, ids=placer_table.table())


def test_placers_of_both_packages():
  names = registry.names()
  assert {'metis', 'random', 'm_etf', 'm_etf_published'} <= set(names)
  assert {registry.LEARNED, registry.EXPERT, 'hdp', 'coloc_rl'} <= set(names)
  assert list(names) == [entry.name for entry in _ENTRIES]


def test_colors_are_different_and_complete():
  colors = [entry.color for entry in _ENTRIES]
  assert len(set(colors)) == len(colors)
  assert all(re.fullmatch('#[0-9a-f]{6}', color) for color in colors)


@_each
def test_every_entry_makes_a_placer(entry, monkeypatch):
  # Later tests of this process must not find the policies of this test.
  monkeypatch.setattr(learned, '_cache', learned._PolicyCache())
  monkeypatch.setattr(learned, '_load', lambda folder: None)
  placer = registry.create(entry.name)
  assert callable(placer.place)


@_each
def test_a_factory_gets_the_arguments_of_its_entry(entry, monkeypatch):
  """Most arguments are no public attribute of the placer."""
  module = importlib.import_module(entry.module)
  made = mock.Mock()
  monkeypatch.setattr(module, entry.factory.partition(':')[2], made)
  assert registry.create(entry.name, 'folder') is made.return_value
  arguments = dict(entry.arguments)
  if placer_table.Need.POLICY in entry.needs:
    arguments['policy'] = 'folder'
  made.assert_called_once_with(**arguments)


@_each
def test_every_entry_is_complete(entry):
  assert entry.how and '|' not in entry.how
  # A placer that follows a paper names the paper.
  assert (entry.paper or entry.kind == placer_table.Kind.CONSTRUCTS or
          entry.name in ('best_of', 'structured'))
  trained = entry.module.startswith('placer_model.')
  assert (placer_table.Need.KERAS_2 in entry.needs) == trained


def test_extras_are_those_of_the_package(monkeypatch):
  monkeypatch.chdir(_TOP)
  with mock.patch('setuptools.setup') as setup:
    runpy.run_path(str(_TOP / 'setup.py'))
  extras = set(setup.call_args.kwargs['extras_require'])
  assert {entry.extra for entry in _ENTRIES} - {''} <= extras


def test_published_algorithms_are_no_part_of_others():
  published = {e.name for e in _ENTRIES if e.arguments.get('published')}
  assert published == {'m_topo_published', 'm_etf_published', 'm_sct_published'}
  used = {*best_of.DEFAULT_NAMES, *annealing_placer.DEFAULT_STARTS}
  assert not published & used and used <= set(registry.names())


def test_unknown_names_get_a_hint():
  with pytest.raises(errors.GdpError, match='Did you mean "random"'):
    registry.create('randon')
  with pytest.raises(errors.GdpError, match='all .*: gdp place --help'):
    registry.create('')


def test_an_unknown_name_is_answered_in_a_line():
  with pytest.raises(errors.GdpError) as error:
    registry.create('metus')
  assert str(
      error.value).startswith('Unknown placer "metus". Did you mean "metis"?')
  assert len(str(error.value)) < 100


def test_without_the_trainer_there_are_fewer(monkeypatch):
  monkeypatch.setattr(shipped_policy, 'folder', lambda: None)
  names = set(placer_table.table.__wrapped__())
  assert 'metis' in names and 'hdp' not in names


def test_entries_are_read_without_the_trainer_or_tensorflow():
  done = fresh.run_code('import json, sys\n'
                        'from gdp_grappler.placers import registry\n'
                        'print(json.dumps([registry.names(), '
                        '*sys.modules]))')
  names, *modules = done.results
  assert names == list(registry.names())
  assert not {'placer_model', 'tensorflow'} & set(modules)


def test_planners_refuse_a_process_with_keras_3():
  code = (f'{warm.MARK}import json, tensorflow\n'
          'from gdp_grappler import errors\n'
          'from gdp_grappler.placers import registry\n'
          'try:\n'
          '  registry.create("hdp")\n'
          'except errors.GdpError as error:\n'
          '  print(json.dumps(str(error)))\n')
  said = fresh.run_code(code).results
  assert 'Placer "hdp" cannot be used here' in said and 'Keras 3' in said


def test_planners_are_made_where_their_factory_came_before_tensorflow():
  done = fresh.run_code('import json\n'
                        'from gdp_grappler.placers import registry\n'
                        'make = registry.factory("hdp")\n'
                        'import tensorflow\n'
                        'print(json.dumps(callable(make().place)))')
  assert done.results is True


def test_another_name_makes_the_same_placer():
  one, paper = registry.get('gdp_one'), registry.get('gdp_paper')
  assert (one.same_as, paper.same_as) == ('gdp_paper', '')
  assert (one.factory, one.arguments, one.kind, one.needs,
          one.paper) == (paper.factory, paper.arguments, paper.kind,
                         paper.needs, paper.paper)
