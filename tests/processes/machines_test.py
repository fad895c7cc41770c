"""Where jobs run, by what was typed."""

from gdp_grappler.processes import local_team
from gdp_grappler.processes import machines
from gdp_grappler.processes import ray_machines


def test_without_ray_it_is_here():
  for workers, width in ((None, 1), (3, 3)):
    with machines.of(None, workers) as here:
      assert isinstance(here, local_team.Here) and here.width == width


def test_with_ray_it_is_a_cluster():
  # It is entered in `ray_machines_test`.
  assert isinstance(machines.of('auto', None), ray_machines.RayMachines)
