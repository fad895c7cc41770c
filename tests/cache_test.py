import pytest

from gdp_grappler import cache


def test_what_is_kept_is_for_one_user(tmp_path):
  place = cache.path('a', 'b', folder=tmp_path / 'cache')
  assert cache.kept(place, pytest.fail) is None
  cache.keep(place, 'text', pytest.fail)
  assert cache.kept(place, pytest.fail) == b'text'
  assert place.stat().st_mode & 0o777 == 0o600
  for folder in (place.parent, tmp_path / 'cache'):
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_folder_is_the_environment_s(monkeypatch, tmp_path):
  monkeypatch.setenv('GDP_CACHE_DIR', str(tmp_path))
  assert cache.path('profiles', 'x.json') == tmp_path / 'profiles' / 'x.json'


@pytest.mark.parametrize('obstacle', ['file', 'folder'])
def test_what_cannot_be_kept_costs_one_line(tmp_path, obstacle):
  told = []
  place = cache.path('a', 'b', folder=tmp_path / 'cache')
  if obstacle == 'file':
    (tmp_path / 'cache').write_text('')
  else:
    place.mkdir(parents=True)
    assert cache.kept(place, told.append) is None
    assert 'Made anew' in told.pop()
  cache.keep(place, 'text', told.append)
  line, = told
  assert 'Not kept' in line and 'GDP_CACHE_DIR' in line
