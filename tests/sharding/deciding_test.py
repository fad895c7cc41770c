import threading

import pytest

from gdp_grappler.sharding import deciding


@pytest.fixture(autouse=True)
def _nobody_else(monkeypatch):
  monkeypatch.setattr(deciding, '_of_program', [])


def _parts(layer, why=''):
  return deciding.parts(layer, (10, 2), 4, why)


def _two(*_):
  return 2


def test_who_entered_last_decides_unless_it_has_no_opinion():
  deciding.decide_by(lambda *_: 7)
  deciding.enter(_two)
  deciding.enter(lambda layer, *_: 5 if layer == 'words' else 0)
  try:
    assert [_parts(name) for name in ('words', 'head')] == [5, 2]
  finally:
    deciding._scopes.stack.clear()
  assert _parts('words') == 7


def test_what_cannot_be_split_stays_whole_whoever_wants_parts():
  deciding.decide_by(_two)
  assert _parts('words') == 2
  assert _parts('words', 'its constraint looks at the whole') == 1


def test_where_nobody_decides_tables_are_whole():
  assert _parts('words') == 1


def test_what_is_entered_is_of_its_thread():
  found = []
  deciding.enter(_two)
  thread = threading.Thread(target=lambda: found.append(_parts('words')))
  thread.start()
  thread.join()
  assert _parts('words') == 2
  deciding.leave(_two)
  assert found == [1] and _parts('words') == 1
