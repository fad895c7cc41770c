import json

import pytest

from gdp_grappler import errors
from gdp_grappler import sealed_files

_FORMAT = sealed_files.Format('gdp_thing', 3, 'thing', 'gdp thing', 1000)


def _parsed(data):
  return _FORMAT.parsed(data, 'f.json', lambda fields: int(fields['size']))


def _text(**fields):
  return _FORMAT.to_text({**_FORMAT.head(), **fields})


def test_what_was_written_is_read(tmp_path):
  path = tmp_path / 'thing.json'
  path.write_text(_text(size=7))
  assert _parsed(_FORMAT.read(path)) == 7


@pytest.mark.parametrize('data, why', [
    ('{', 'it is not JSON'),
    ('[]', 'its format is not "gdp_thing"'),
    ('{"format": "other"}', 'its format is not "gdp_thing"'),
    ('{"format": "gdp_thing", "version": 2}', 'its version is 2'),
    (_text(other=1), "field 'size' is missing"),
    (_text(size='many'), 'invalid literal'),
    (_text(size=7).replace('7', '8'), 'it was changed since it was written'),
])
def test_what_is_damaged_is_one_error(data, why):
  with pytest.raises(errors.GdpError, match='f.json is not a usable thing: '):
    _parsed(data)
  with pytest.raises(errors.GdpError) as error:
    _parsed(data)
  assert why in str(error.value)
  assert str(error.value).endswith('Make it anew with `gdp thing`.')


def test_a_file_that_is_missing_names_the_command(tmp_path):
  with pytest.raises(errors.GdpError, match='Make one with `gdp thing`'):
    _FORMAT.read(tmp_path / 'none.json')


def test_a_file_that_is_too_large_is_not_read(tmp_path):
  path = tmp_path / 'thing.json'
  path.write_text('x' * 1001)
  with pytest.raises(errors.GdpError):
    _FORMAT.read(path)


def test_the_digest_is_part_of_the_text():
  assert 'digest' in json.loads(_text(size=1))
