"""Values that are no placed steps."""

import pytest

import gdp_grappler
from gdp_grappler import errors


@pytest.mark.parametrize('step', [3, None, 'plan.json'])
def test_a_value_that_is_no_step_is_named(step, tmp_path):
  """Once an AttributeError did not name the argument."""
  match = 'give what `place` or `load_plan` returns'
  with pytest.raises(errors.PlanError, match=f'before is .*; {match}'):
    gdp_grappler.diff(step, step)
  with pytest.raises(errors.PlanError, match=f'plan is .*; {match}'):
    gdp_grappler.explain(step, 'decoder')
  for plans in (step, [step]):
    with pytest.raises(errors.PlanError, match=f'plans is .*; {match}'):
      gdp_grappler.report(plans, tmp_path / 'page.html')
