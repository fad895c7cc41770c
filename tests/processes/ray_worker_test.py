"""What Ray runs for a job, without Ray; `ray_machines_test` has it."""

from gdp_grappler.processes import jobs
from gdp_grappler.processes import ray_worker

_FUNCTION = 'gdp_grappler.processes.job_worker:main'


def test_another_release_is_refused():
  result, problem, _ = ray_worker.run('team', _FUNCTION, [], jobs.Call('job'),
                                      'another', {})
  assert result is None and 'another release of gdp-grappler' in problem


def test_what_is_installed_is_a_digest():
  code = ray_worker.installed(_FUNCTION)
  assert len(code) == 16
  ray_worker.installed.cache_clear()
  assert ray_worker.installed(_FUNCTION) == code
  assert ray_worker.installed('placer_model.versions:of') != code


def test_variables_that_are_not_set_are_told(monkeypatch):
  monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
  monkeypatch.setenv('GDP_POLICY', 'mine')
  assert ray_worker.variables() == {
      'GDP_POLICY': 'mine', 'OMP_NUM_THREADS': None
  }
