"""The key `profile` of the option, in the optimizer."""

import dataclasses
import pathlib

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from gdp_grappler.plugin import optimizer
from gdp_grappler.plugin import settings as settings_lib
from helpers import graph_defs
from helpers import graphs
from helpers import profiles

_TESTDATA = pathlib.Path(__file__).parents[1] / 'testdata'
_CPUS = tuple(map(graph_defs.CPU, range(3)))


@pytest.fixture(name='source')
def _source():
  return dataclasses.replace(
      sources.load(str(_TESTDATA / 'dense_train_step.pb')), devices=_CPUS)


def test_a_profile_prices_the_ops(source, tmp_path):
  """The profile says 1 s per op, the roofline microseconds."""
  graph = graph_def_io.read(source)
  path = tmp_path / 'profile.json'
  profiles.of_graph(graph, np.ones(graph.num_ops)).save(path)
  by_roofline = settings_lib.Settings(placer='single_device', keep_best=False)
  by_profile = dataclasses.replace(by_roofline, profile=str(path))
  assert optimizer.optimize(source, by_roofline).after_s < .01
  # Ops of the longest path run one by one, other ops at the same time.
  assert 10 < optimizer.optimize(source,
                                 by_profile).after_s <= (graph.num_ops * 1.1)


def test_a_profile_of_something_else_is_an_error(source, tmp_path):
  path = tmp_path / 'profile.json'
  other = graphs.make_graph(num_ops=2, op_types=['Conv2D', 'LRN'])
  profiles.of_graph(other, np.ones(2)).save(path)
  with pytest.raises(errors.GdpError, match='no type of op in common'):
    optimizer.optimize(source, settings_lib.Settings(profile=str(path)))
