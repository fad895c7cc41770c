"""Effects of `may_round` on placements, plans and their prices."""

import dataclasses
import json
import pathlib

import pytest

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets

_GRAPH = str(
    pathlib.Path(__file__).parents[1] / 'testdata' / 'dense_train_step.pb')


def _on_cpu(placed):
  """Returns the number of ops that round differently on the CPU."""
  return constraints.changes_numbers(placed.graph, placed.step.cluster,
                                     placed.placement.devices).sum()


@pytest.fixture(scope='module')
def rounding():
  placed = gdp_grappler.place(_GRAPH, '2xP100', placer='random', may_round=True)
  assert _on_cpu(placed)
  return placed


@pytest.fixture
def plan(rounding, tmp_path):
  path = tmp_path / 'plan.json'
  rounding.save(path)
  return path


def _edited(plan, **changes):
  fields = json.loads(plan.read_text())
  del fields['digest']
  fields = {**fields, **changes}
  plan.write_text(json.dumps({k: v for k, v in fields.items() if v is not None
                             }))
  return plan


def test_by_default_no_number_changes():
  placed = gdp_grappler.place(_GRAPH, '2xP100', placer='random')
  assert not _on_cpu(placed)


def test_a_plan_says_that_it_may_round(plan, tmp_path):
  assert json.loads(plan.read_text())['may_round'] is True
  path = tmp_path / 'other.json'
  gdp_grappler.place(_GRAPH, '2xP100', placer='random').save(path)
  assert 'may_round' not in json.loads(path.read_text())


def test_a_plan_that_may_round_is_honoured(rounding, plan):
  for loaded in (gdp_grappler.load_plan(plan, _GRAPH),
                 gdp_grappler.place(_GRAPH, '2xP100', plan=plan)):
    assert (loaded.placement.devices == rounding.placement.devices).all()
    assert loaded.graph.may_round
    assert loaded.step_time_s == pytest.approx(rounding.step_time_s)


def test_a_plan_that_may_not_round_is_refused_where_it_would(plan):
  with pytest.raises(errors.InfeasiblePlacementError, match='may_round'):
    gdp_grappler.load_plan(_edited(plan, may_round=None), _GRAPH)
  allowed = gdp_grappler.load_plan(plan, _GRAPH, may_round=True)
  assert _on_cpu(allowed)


def test_a_plan_that_may_round_is_ordered_and_written_as_a_graph(
    plan, tmp_path):
  placed = gdp_grappler.place(_GRAPH, '2xP100', plan=plan,
                              order='critical_path')
  placed.save(tmp_path / 'placed.pb')
  assert (tmp_path / 'placed.pb').stat().st_size


@pytest.mark.parametrize('value', [1, 'true', []])
def test_a_plan_says_yes_or_no(plan, value):
  with pytest.raises(errors.PlanError, match='neither true nor false'):
    gdp_grappler.load_plan(_edited(plan, may_round=value), _GRAPH)


def test_a_map_of_layers_is_obeyed_and_told_what_rounds(tmp_path):
  """A map says where a layer is computed, as a pin does."""
  told = []
  placed = gdp_grappler.place(_GRAPH, '2xP100', plan={'dense_1': 'CPU:0'},
                              tell=told.append)
  count = _on_cpu(placed)
  assert 0 < count < _on_cpu(
      gdp_grappler.place(_GRAPH, '2xP100', plan={'*': 'CPU:0'}))
  assert told[-1].startswith(f'{count} ops compute on another kind of device')
  # The plan file says so, too.
  placed.save(tmp_path / 'plan.json')
  assert json.loads((tmp_path / 'plan.json').read_text())['may_round'] is True


def test_a_map_for_gpus_rounds_nothing():
  placed = gdp_grappler.place(_GRAPH, '2xP100', plan={'dense_1': 'GPU:1'})
  assert not _on_cpu(placed)


def test_plans_are_compared_whichever_may_round(rounding):
  exact = gdp_grappler.place(_GRAPH, '2xP100', placer='random')
  found = gdp_grappler.diff(rounding, exact)
  moved = rounding.placement.devices != exact.placement.devices
  assert len(found.moved) == moved.sum() > 0


def _tight():
  """A cluster of a GPU too small for the graph, and a CPU with room."""
  cluster = presets.preset('1xP100')
  cpu, gpu = cluster.devices
  return dataclasses.replace(
      cluster, devices=(cpu, dataclasses.replace(gpu, memory_bytes=20_000)))


def test_what_only_a_cpu_has_room_for_is_said_with_the_way_out():
  with pytest.raises(errors.InfeasiblePlacementError,
                     match='may_round lets it move'):
    gdp_grappler.place(_GRAPH, _tight())
  lifted = gdp_grappler.place(_GRAPH, _tight(), may_round=True)
  assert lifted.fits and not lifted.warnings and _on_cpu(lifted)


def test_where_nothing_would_help_nothing_is_said():
  with pytest.raises(errors.InfeasiblePlacementError) as raised:
    gdp_grappler.place(_GRAPH, _tight(), placer='gpu_only', may_round=True)
  assert 'may_round' not in str(raised.value)
