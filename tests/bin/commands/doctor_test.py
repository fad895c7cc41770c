import types

import pytest

from gdp_grappler.bin.commands import common
from gdp_grappler.bin.commands import doctor as command
from gdp_grappler.plugin import doctor

_GOOD = doctor.Finding(doctor.GOOD, 'simulator', 'library loads')
_NOTE = doctor.Finding(doctor.NOTE, 'XLA', 'on', 'Unset it.')
_BAD = doctor.Finding(doctor.BAD, 'loader', 'none', 'Reinstall.')


@pytest.mark.parametrize('findings, code, last', [
    ([_GOOD, _NOTE], 0, 'All is well.'),
    ([_GOOD, _BAD, _BAD], 1, '2 of 3 checks failed.'),
])
def test_what_is_found_is_told(monkeypatch, capsys, findings, code, last):
  asked = []
  monkeypatch.setattr(common, 'load_tensorflow', lambda: None)
  monkeypatch.setattr(doctor, 'examine',
                      lambda policy: asked.append(policy) or findings)
  assert command.run(types.SimpleNamespace(policy='folder')) == code
  assert asked == ['folder']
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == 'ok    simulator: library loads' and lines[-1] == last
  remedies = [line for line in lines if line.startswith('      -> ')]
  assert len(remedies) == sum(bool(finding.remedy) for finding in findings)
