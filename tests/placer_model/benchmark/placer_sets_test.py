"""Sets of placers, and those that make sense."""

import pytest

from gdp_grappler import errors
from helpers import clusters
from placer_model.benchmark import placer_sets


def test_sets_share_nothing_and_make_all():
  heuristics = placer_sets.parse('heuristics')
  assert {'cpu_only', 'gpu_only', 'single_device', 'random',
          'metis'} <= set(heuristics)
  learned = placer_sets.parse('learned')
  assert {'gdp', 'gdp_policy', 'hdp', 'coloc_rl'} <= set(learned)
  assert sorted(placer_sets.parse('all')) == sorted(heuristics + learned)
  assert not set(heuristics) & set(learned)


def test_names_come_once_in_the_order_given():
  names = placer_sets.parse('metis, gdp ,metis,random')
  assert names == ('metis', 'gdp', 'random')


@pytest.mark.parametrize('text, said', [('metsi', 'Did you mean "metis"'),
                                        ('', 'names no placer')])
def test_unknown_names(text, said):
  with pytest.raises(errors.GdpError, match=said):
    placer_sets.parse(text)


def test_what_makes_no_sense_is_left_out_unless_named():
  cpu = clusters.make_cluster(0)
  names = ('cpu_only', 'gpu_only', 'human_expert')

  def applicable(cluster, expert, wanted=()):
    return placer_sets.applicable(names, cluster, expert, frozenset(wanted))

  assert applicable(cpu, False) == ('cpu_only',)
  assert applicable(clusters.make_cluster(1), True) == names
  assert applicable(cpu, False,
                    ['human_expert']) == ('cpu_only', 'human_expert')


def test_other_names_are_in_no_set_and_learn_as_well():
  for names in (placer_sets.parse('all'), placer_sets.parse('learned')):
    assert 'gdp_paper' in names and 'gdp_one' not in names
  assert placer_sets.parse('learned,gdp_one')[-1] == 'gdp_one'
  assert placer_sets.learns('gdp_one') and not placer_sets.learns('metis')
