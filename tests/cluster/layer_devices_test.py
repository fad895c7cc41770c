import dataclasses
import json

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import layer_devices
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan as plan_lib
from helpers import clusters
from helpers import graphs
from helpers import plans

_MAP = (('head', 'GPU:1'), ('words', 'CPU:0'))


def test_the_map_of_a_plan_is_found_in_each_of_its_forms(tmp_path):
  written, placed = tmp_path / 'map.json', tmp_path / 'plan.json'
  written.write_text(json.dumps(dict(_MAP)))
  graph = graphs.make_graph([(0, 1, 8)])
  placement = placement_lib.Placement([0, 1], clusters.make_cluster(2))
  plan_lib.save(str(placed), graph, placement, layers=_MAP)
  for plan in (dict(_MAP), str(written), written, placed):
    assert layer_devices.layers(plan) == _MAP
  plan_lib.save(str(placed), graph, placement)
  assert layer_devices.layers(placed) == layer_devices.layers(None) == ()


def test_a_file_that_is_no_plan_is_told(tmp_path):
  with pytest.raises(errors.PlanError, match='Cannot read'):
    layer_devices.layers(tmp_path / 'no')


@pytest.mark.parametrize('pattern, device',
                         [('words', 'CPU:0'), ('net', 'CPU:0'), ('*', 'CPU:0'),
                          ('w*', 'CPU:0'), ('net/words', 'CPU:0'), ('word', ''),
                          ('head', '')])
def test_a_map_places_a_whole_table(pattern, device):
  entries = ((pattern, 'CPU:0'),)
  names = ['net/words/embeddings', 'net/head2/kernel']
  assert layer_devices.of_variables(entries, names)[0] == device
  assert layer_devices.of_variable(entries, names[0]) == device


def test_a_numbered_layer_alone_is_not_taken_for_the_layer_without_number():
  entries = (('words', 'CPU:0'), ('head_1', 'GPU:1'))
  assert not layer_devices.of_variable(entries, 'words_1/embeddings')
  assert layer_devices.of_variable(entries, 'head_1/kernel') == 'GPU:1'


@pytest.mark.parametrize('pattern',
                         ['words/embeddings_part_1', 'words/*_part_1'])
def test_a_map_of_parts_is_for_tables_in_parts(pattern):
  """A map of the parts of one table left the device of all others open."""
  entries = (('words', 'CPU:0'), (pattern, 'GPU:1'), ('head', 'GPU:0'))
  names = ['net/words/embeddings', 'net/head/kernel']
  assert layer_devices.of_variables(entries, names) == ('', 'GPU:0')
  assert not layer_devices.of_variable(entries, 'words/embeddings')


def test_parts_of_any_table_leave_whole_tables_where_the_map_puts_them():
  """'*_part_1' once left the devices of all variables open."""
  entries = (('words', 'CPU:0'), ('*_part_1', 'GPU:1'))
  assert layer_devices.of_variables(entries,
                                    ['net/words/embeddings']) == ('CPU:0',)


@pytest.mark.parametrize('variables, parts, whole', [
    (('', 'net/words/embeddings'), 0, True),
    (('net/words/embeddings_part_0', 'net/words/embeddings_part_1'), 2, False)
])
def test_a_plan_knows_whether_a_table_is_in_parts(variables, parts, whole,
                                                  tmp_path):
  path = str(tmp_path / 'plan.json')
  plans.save_with_words(path, *variables)
  plan = plan_lib.read(path)
  assert layer_devices.parts_in_plan(plan, 'words/embeddings') == parts
  assert layer_devices.has_whole(plan, 'words/embeddings') == whole
  assert not layer_devices.parts_in_plan(plan, 'head/kernel')
  assert not layer_devices.has_whole(plan, 'head/kernel')
  earlier = dataclasses.replace(plan, tables=None)
  assert not layer_devices.has_whole(earlier, 'words/embeddings')


@pytest.mark.parametrize('path, parts', [('a/words/embeddings', 4),
                                         ('b/words/embeddings', 2),
                                         ('words/embeddings', 0),
                                         ('net/a/words/embeddings', 4),
                                         ('words_1/embeddings', 3),
                                         ('a/embeddings', 0),
                                         ('words_2/embeddings', 0),
                                         ('embeddings', 0),
                                         ('dense/kernel', 0)])
def test_a_table_is_told_by_its_path(path, parts):
  """Once a table of a layer with another number or scope was taken for it."""
  plan = plan_lib.Plan(
      'net', '', clusters.make_cluster(2), {}, tables={
          'a/words/embeddings': 4, 'b/words/embeddings': 2,
          'words_1/embeddings': 3, 'dense_1/kernel': 2
      })
  assert layer_devices.parts_in_plan(plan, path) == parts


@pytest.mark.parametrize('patterns, found', [
    (['stage_1'], [0, -1, -1]),
    (['stage_1_1'], [-1, 0, -1]),
    (['stage_1', 'stage_1_1'], [0, 1, -1]),
    (['stage_?'], [0, 0, -1]),
    (['head'], [-1, -1, 0]),
])
def test_the_names_of_variables_tell_numbered_siblings_apart(patterns, found):
  """The pattern 'stage_1' was once for the layer `stage_1_1`."""
  names = ['stage_1/kernel', 'net/stage_1_1/kernel', 'head_1/bias']
  assert layer_devices.match(patterns, names).patterns.tolist() == found


@pytest.mark.parametrize('patterns, names, found', [
    (['enc/dense', 'dec/dense_1'], ['enc/dense_1/w', 'dec/dense_1/w'], [0, 1]),
    (['a/dense_1', 'b/dense'], ['a/dense_1/w', 'b/dense_1/w'], [0, 1]),
    (['dense', 'a/dense_1'], ['a/dense_1/w', 'dense_1/w', 'dense_2/w'
                             ], [1, 0, 0]),
    (['a/dense_1', 'dens?'], ['a/dense_1/w', 'b/dense_1/w', 'b/dense_2/w'
                             ], [0, 1, 1]),
    (['e*/stage_1'], ['enc/stage_1/w', 'enc/stage_1_1/w'], [0, -1]),
    (['stage_1/w'], ['stage_1/w', 'stage_1_1/w'], [0, -1]),
    (['scale'], ['scale_1/scale', 'scale_1/bias'], [0, 0]),
    (['scale_1'], ['scale_1/w', 'scale_1_1/variable'], [0, 0]),
])
def test_a_pattern_does_not_change_what_another_one_matches(
    patterns, names, found):
  """A layer named exactly once took the numbers of all others literally."""
  assert layer_devices.match(patterns, names).patterns.tolist() == found
