import pytest

from gdp_grappler.plugin import doctor

pytestmark = pytest.mark.e2e


def test_a_fresh_process_has_the_hook_and_places_ops():
  found = {finding.what: finding for finding in doctor._in_a_fresh_process()}
  assert found['hook'].state == doctor.GOOD
  assert found['placement'].state == doctor.GOOD, found['placement'].detail
  assert '2 of 2 logical CPUs' in found['placement'].detail
