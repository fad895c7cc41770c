"""Which folders may limit a process; `cores_test` has quotas of cores."""

import pytest

from gdp_grappler import control_groups


@pytest.mark.parametrize('own, expected', [
    ('0::/user/job', ['user/job', 'user', '.']),
    ('0::/', ['.']),
    ('4:memory:/job\n3:cpu,cpuacct:/', ['memory/job', 'memory']),
    ('3:cpu,cpuacct:/job', []),
    (None, []),
])
def test_folders_of_memory(monkeypatch, tmp_path, own, expected):
  monkeypatch.setattr(control_groups, '_ROOT', tmp_path)
  monkeypatch.setattr(control_groups, '_OWN', tmp_path / 'own')
  if own is not None:
    (tmp_path / 'own').write_text(own)
  found = control_groups.folders('memory')
  assert [str(path.relative_to(tmp_path)) for path in found] == expected
