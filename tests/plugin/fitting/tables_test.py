"""Choice of the tables that are made in parts; `e2e` tests training."""

import dataclasses

import pytest

from gdp_grappler.plugin import settings as settings_lib
from gdp_grappler.plugin.fitting import tables
from helpers import clusters
from helpers import plans

_SHAPE, _ITEMSIZE = (1000, 8), 4
_NEEDS = 4 * 1000 * 8 * 4


@pytest.fixture(name='lines')
def _lines(monkeypatch):
  found = []
  monkeypatch.setattr(tables.notices, 'say_once', found.append)
  return found


def _parts(monkeypatch, option, rooms=(), why='', layer='words'):
  settings = settings_lib.from_option(option)
  monkeypatch.setattr(tables.switch, 'settings', lambda: settings)
  monkeypatch.setattr(tables, '_rooms_bytes', lambda _: rooms)
  return tables.parts(layer, _SHAPE, _ITEMSIZE, why, f'{layer}/embeddings')


def test_a_table_that_fits_no_card_is_made_in_parts(monkeypatch, lines):
  rooms = (_NEEDS - 1, _NEEDS // 2)
  assert _parts(monkeypatch, True, rooms) == 4
  assert len(lines) == 1 and '"words"' in lines[0] and '4 parts' in lines[0]


@pytest.mark.parametrize(
    'option, rooms', [(None, (1, 1)), ({'split_tables': 'off'}, (1, 1)),
                      (True, (_NEEDS, 1)), (True, (1,)), (True, ()),
                      ({'split_tables': {'head': 2}}, (1, 1))],
    ids=['off', 'no tables', 'fits', 'one device', 'unknown', 'another'])
def test_others_are_whole_without_a_word(option, rooms, monkeypatch, lines):
  assert _parts(monkeypatch, option, rooms) < 2
  assert not lines


def test_a_table_that_is_named_is_split_wherever_it_fits(monkeypatch, lines):
  option = {'split_tables': {'w*': 3}}
  assert _parts(monkeypatch, option, (10**12,)) == 3
  assert 'as the option says' in lines[0]


def test_the_line_has_the_number_of_parts_that_are_made(monkeypatch, lines):
  """Once a line announced 500 parts of a table with 101 rows."""
  settings = settings_lib.from_option({'split_tables': {'words': 500}})
  monkeypatch.setattr(tables.switch, 'settings', lambda: settings)
  assert tables.parts('words', (101, 8), 4, '', made_for=lambda _: 101) == 500
  assert 'is made in 101 parts' in lines[0]


@pytest.mark.parametrize('option', [True, {'split_tables': {'w*': 3}}])
def test_a_line_says_why_a_table_stays_whole(option, monkeypatch, lines):
  rooms = (_NEEDS - 1, _NEEDS // 2)
  _parts(monkeypatch, option, rooms, why='it has a constraint')
  assert len(lines) == 1
  assert '"words"' in lines[0]
  assert 'stays whole: it has a constraint; ' in lines[0]


@pytest.mark.parametrize('tables_option', ['auto', {'words': 4}])
def test_a_table_stays_whole_if_the_option_only_reports(tables_option,
                                                        monkeypatch, lines):
  """Once the table was made in four parts."""
  option = {'mode': 'report', 'split_tables': tables_option}
  assert _parts(monkeypatch, option, (_NEEDS - 1, _NEEDS // 2)) == 1
  assert len(lines) == 1 and "stays whole: 'mode': 'report'" in lines[0]
  assert '4 parts were wanted' in lines[0]


def _written(tmp_path):
  path = tmp_path / 'map.json'
  path.write_text('{"words": "CPU:0"}')
  return str(path)


@pytest.mark.parametrize('plan', [{'words': 'CPU:0'}, {'*': 'CPU:0'}, _written],
                         ids=['map', 'all', 'file'])
def test_a_table_that_a_map_places_stays_whole_with_a_line(
    plan, monkeypatch, lines, tmp_path):
  plan = plan(tmp_path) if callable(plan) else plan
  rooms = (_NEEDS - 1, _NEEDS // 2)
  assert _parts(monkeypatch, {'plan': plan}, rooms) == 1
  assert len(lines) == 1 and 'stays whole: the map of layers' in lines[0]
  assert 'CPU:0' in lines[0] and '4 parts' in lines[0]


@pytest.mark.parametrize(
    'option', [{'plan': {'head': 'CPU:0'}}, {'plan': 'missing.json'},
               {'plan': {'words': 'CPU:0'}, 'split_tables': {'words': 4}}],
    ids=['another layer', 'no file', 'parts as asked for'])
def test_a_table_that_a_map_leaves_alone_is_split(option, monkeypatch, lines):
  assert _parts(monkeypatch, option, (_NEEDS - 1, _NEEDS // 2)) == 4
  assert len(lines) == 1 and 'is made in 4 parts' in lines[0]


def _plan_of_ops(tmp_path, *variables):
  path = str(tmp_path / 'plan.json')
  plans.save_with_words(path, *variables)
  return {'plan': path}


def test_a_table_that_a_plan_of_ops_has_whole_stays_whole_with_a_line(
    monkeypatch, lines, tmp_path):
  """Once the table was in parts, with room for slots, against the plan."""
  option = _plan_of_ops(tmp_path, '', 'net/words/embeddings')
  rooms = (_NEEDS - 1, _NEEDS // 2)
  assert _parts(monkeypatch, option, rooms) == 1
  assert len(lines) == 1 and 'plan.json has it whole' in lines[0]
  assert _parts(monkeypatch, option, rooms, layer='other') == 4


def test_a_table_is_in_the_parts_of_a_plan_of_ops(monkeypatch, lines, tmp_path):
  option = _plan_of_ops(tmp_path,
                        *(f'net/words/embeddings_part_{i}' for i in range(2)))
  assert _parts(monkeypatch, option, (10**12, 10**12)) == 2
  assert len(lines) == 1 and ': as in plan ' in lines[0]


def test_a_numbered_layer_of_a_plan_is_another_layer(monkeypatch, lines,
                                                     tmp_path):
  """Once the table of "words" got the parts of "words_1"."""
  option = _plan_of_ops(tmp_path,
                        *(f'net/words_1/embeddings_part_{i}' for i in range(2)))
  assert _parts(monkeypatch, option, (10**12, 10**12)) < 2
  assert _parts(monkeypatch, option, (10**12, 10**12), layer='words_1') == 2
  assert len(lines) == 1


def test_a_name_that_no_table_has_is_told(monkeypatch, lines):
  """Once a misspelt name in a program was silently ignored."""
  warned = []
  monkeypatch.setattr(tables.notices, 'warn_once', warned.append)
  monkeypatch.setattr(tables, '_seen', set())
  _parts(monkeypatch, {'split_tables': {'wrods': 3, 'h*': 2}}, layer='words')
  _parts(monkeypatch, {'split_tables': {'wrods': 3, 'h*': 2}}, layer='head')
  tables.warn_of_unused()
  assert len(warned) == 1 and 'names "wrods"' in warned[0]
  assert 'Did you mean "words"?' in warned[0] and len(lines) == 1


@pytest.mark.parametrize('option', [None, True, {'split_tables': 'off'}])
def test_without_names_there_is_nothing_to_warn_of(option, monkeypatch):
  monkeypatch.setattr(tables.notices, 'warn_once', pytest.fail)
  _parts(monkeypatch, option)
  tables.warn_of_unused()


def test_rooms_are_those_of_cards(monkeypatch):
  cluster = clusters.make_cluster(2)
  monkeypatch.setattr(tables, '_rooms_of', tables._rooms_of.__wrapped__)
  from gdp_grappler.plugin import task_links
  monkeypatch.setattr(task_links.KNOWN, 'cluster', lambda *_: cluster)
  found = tables._rooms_of(dataclasses.replace(settings_lib.Settings()), ())
  assert len(found) == 2 and min(found) > 0
