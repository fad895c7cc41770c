from gdp_grappler.cluster import presets
from gdp_grappler.plugin import step_costs


def test_a_fit_takes_what_a_call_takes_and_more():
  cluster = presets.preset('1xP100')
  called, fitted = step_costs.of_function(cluster), step_costs.of_fit(cluster)
  assert called.step_s == cluster.step_s + step_costs.CALL_S
  assert fitted.step_s == called.step_s + step_costs.FIT_S
  assert called.devices == fitted.devices == cluster.devices


def test_what_was_measured_of_a_cluster_stays():
  cluster = step_costs.of_function(presets.preset('1xP100'))
  assert step_costs.of_function(cluster).step_s == 2 * step_costs.CALL_S
