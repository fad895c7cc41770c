"""What a process of Ray's begins a job with; `ray_machines_test` has it run."""

import pickle
import sys

from gdp_grappler.processes import jobs
from gdp_grappler.processes import ray_entry


def test_a_folder_that_is_not_searched_here_is_not_there(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, 'path', ['/elsewhere'])
  assert ray_entry.folders() == [str(tmp_path)]
  for searched in (str(tmp_path), ''):
    monkeypatch.setattr(sys, 'path', ['/elsewhere', searched])
    assert ray_entry.folders() == []


def test_the_folder_is_gone_before_anything_is_imported(monkeypatch):
  monkeypatch.setattr(sys, 'path', ['/strange', *sys.path])
  packed = pickle.dumps(('team', 'gdp_grappler.processes.job_worker:main',
                         jobs.Call('job'), 'another', {}))
  result, problem, _ = ray_entry.run(['/strange'], packed, [])
  assert result is None and 'another release' in problem
  assert '/strange' not in sys.path
