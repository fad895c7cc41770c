"""Jobs on Ray: small clusters on this machine, each in its own interpreter."""

import os
import pathlib
import sys
import types

import pytest

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.processes import ray_machines
from helpers import fresh
from helpers import ray_programs

pytestmark = pytest.mark.e2e


def _run(name, **variables):
  path = os.pathsep.join(p for p in sys.path if p)
  return fresh.run_code(
      f'from helpers import ray_programs\nray_programs.{name}()', 280,
      PYTHONPATH=path, **variables).results


@pytest.fixture(name='local', scope='module')
def _local(tmp_path_factory):
  """What was seen of a local cluster, its temporary folder and its home."""
  # Sockets have short names.
  folder = tmp_path_factory.mktemp('t')
  (folder / 'home').mkdir()
  (folder / 't').mkdir()
  return _run('local', TMPDIR=str(folder / 't'), HOME=str(folder / 'home'),
              GDP_POLICY='mine'), folder


@ray_programs.needs_ray
def test_results_are_in_the_order_of_the_jobs(local):
  found, _ = local
  assert found['width'] == 2
  assert found['doubled'] == [['setup', 2 * i] for i in range(5)]


@ray_programs.needs_ray
def test_failures_are_those_of_processes_here(local):
  said = local[0]['said']
  assert said['0'] == said['4'] == ['done', '']
  assert said['1'] == [None, 'ValueError: two lines']
  assert said['2'][1].startswith('the process ended with exit code 3')
  assert 'killed' in said['3'][1]


@ray_programs.needs_ray
def test_workers_see_what_they_see_here(local):
  # Ray would have them compute with one thread.
  assert local[0]['variables'] == [os.environ.get('OMP_NUM_THREADS'), 'mine']


@ray_programs.needs_ray
def test_workers_give_way_no_more_than_processes_here(local):
  # By Ray's default they do by 15: where others work they stand still.
  assert local[0]['gives_way_by'] == 0


@ray_programs.needs_ray
def test_only_this_machine_gets_in(local):
  listening = local[0]['listening']
  assert listening and all(listening)


@ray_programs.needs_ray
def test_nothing_is_left(local):
  found, folder = local
  # Not where the tests keep their files: sockets have short names.
  assert pathlib.Path(found['folder']).parent.name.startswith('gdp_ray')
  assert not pathlib.Path(found['folder']).parent.exists()
  assert not list((folder / 't').iterdir())
  assert not list((folder / 'home').iterdir())


@ray_programs.needs_ray
def test_where_a_command_is_given_does_not_matter(tmp_path):
  # From the root of a repository each job failed: its source tree is another
  # release than what is installed.
  fresh.decoys(tmp_path)
  path = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
  done = fresh.run_code(
      'from helpers import ray_programs\nray_programs.elsewhere()', 280,
      folder=tmp_path, PYTHONPATH=path)
  assert done.results == [['setup', 2 * i] for i in range(3)]


@ray_programs.needs_ray
def test_a_node_that_is_lost_loses_nothing():
  assert _run('three_nodes') == {'equal': True, 'hosts': [2, 1]}


@pytest.mark.parametrize('address, said', [('', 'names no cluster'),
                                           ('ray://host:10001', 'Ray Client')])
def test_addresses_that_are_none(address, said):
  with pytest.raises(errors.GdpError, match=said):
    ray_machines.check(address)


@ray_programs.needs_ray
@pytest.mark.parametrize('address, said', [('local', 'does not start on this'),
                                           ('auto', 'No Ray cluster at auto')])
def test_a_ray_that_does_not_start_is_one_line(monkeypatch, address, said):
  import ray

  def init(*unused, **also_unused):
    raise Exception('The node timed out\nduring startup.')

  monkeypatch.setattr(ray, 'init', init)
  with pytest.raises(errors.GdpError, match=said) as info:
    with ray_machines.RayMachines(address):
      pass
  assert '\n' not in str(info.value)


@ray_programs.needs_ray
def test_a_message_names_no_flag_of_ray(monkeypatch):
  """It told users of `gdp_bench` to give --address, a flag of Ray alone."""
  import ray

  def init(*unused, **also_unused):
    raise ConnectionError('Could not find any running Ray instance. Please '
                          'specify the one by setting `--address` flag.')

  monkeypatch.setattr(ray, 'init', init)
  with pytest.raises(errors.GdpError, match='running Ray instance. Start one'):
    with ray_machines.RayMachines('auto'):
      pass


def test_a_missing_ray_is_told_with_its_extra(monkeypatch):
  monkeypatch.setitem(sys.modules, 'ray', None)
  with pytest.raises(errors.GdpError, match=r"'gdp-grappler\[ray\]'"):
    ray_machines.check('local')


@pytest.mark.parametrize('hosts, expected', [
    ([{'GPU': 1.}, {'CPU': 4.}], (4., 0.)),
    ([{'GPU': 1., 'CPU': 2.}, {'CPU': 4.}], (2., 1.)),
    ([{'CPU': 2.}, {'CPU': 4., 'GPU': 0.}], (4., 0.)),
])
def test_the_largest_host_has_a_processor(monkeypatch, hosts, expected):
  """A head with a GPU and no processor meant that no host had a processor."""
  nodes = [{'Alive': True, 'Resources': host} for host in hosts]
  nodes.append({'Alive': False, 'Resources': {'CPU': 9., 'GPU': 9.}})
  ray = types.SimpleNamespace(nodes=lambda: nodes)
  monkeypatch.setitem(sys.modules, 'ray', ray)
  found = ray_machines._largest_host()
  assert (found['num_cpus'], found['num_gpus']) == expected


def test_a_process_has_one_token():
  # Ray keeps the first: a second cluster of the process let nobody in.
  assert ray_machines._token() == ray_machines._token()
  assert len(ray_machines._token()) == 64


@ray_programs.needs_ray
def test_what_is_done_after_the_start_is_not_starting(monkeypatch):
  """Progress said "starting Ray" until the last job was done."""
  lines = []
  listener = types.SimpleNamespace(doing=lines.append)
  monkeypatch.setattr(ray_machines.RayMachines, '_connect', lambda self: None)
  with progress.heard_by(listener), ray_machines.RayMachines('local'):
    assert lines == ['starting Ray on this machine', 'running jobs on Ray']
