import pytest

from gdp_grappler import errors
from gdp_grappler.sharding import choice


@pytest.mark.parametrize('chosen', ['auto', 'off', {'words': 2, 'head_*': 4}])
def test_what_is_said_is_what_was_typed(chosen):
  checked = choice.checked(chosen)
  assert choice.parse(
      choice.text(checked)) == checked == choice.checked(checked)


@pytest.mark.parametrize('wrong', [
    'on', None, 3, {}, {'words': 0}, {'words': True}, {'words': 1.5}, {'': 2},
    {3: 2}, {'words': 10**6}, ('words', 4), (4,)
])
def test_what_is_wrong_is_told(wrong):
  with pytest.raises(errors.GdpError, match='split_tables'):
    choice.checked(wrong)


@pytest.mark.parametrize(
    'wrong', ['', 'words', 'words=', 'words=x', 'words=2,', 'words=0'])
def test_what_is_typed_wrongly_is_told(wrong):
  with pytest.raises(errors.GdpError, match='split_tables'):
    choice.parse(wrong)


def test_the_first_pattern_that_fits_counts():
  chosen = choice.checked({'words': 2, 'w*': 3})
  assert [choice.of_layer(chosen, name) for name in ('words', 'ways', 'head')
         ] == [2, 3, 0]
  assert choice.of_layer('auto', 'words') == 0


@pytest.mark.parametrize('needs, rooms, wanted', [(10, (10, 4), 1),
                                                  (11, (10, 4), 4),
                                                  (11, (10, 10), 4),
                                                  (9.9, (5, 5), 4),
                                                  (20, (5, 5, 5), 9),
                                                  (320, (10, 10), 64),
                                                  (321, (10, 10), 1),
                                                  (11, (10,), 1), (11, (), 1)])
def test_parts_have_room_with_some_to_spare(needs, rooms, wanted):
  found = choice.parts_for(needs, rooms)
  assert found == wanted
  if found > 1:
    assert needs / found <= max(rooms) / 2


@pytest.mark.parametrize('length, count, wanted',
                         [(10, 3, (4, 4, 2)), (4, 3, (2, 2)), (3, 5, (1, 1, 1)),
                          (5, 1, (5,)), (4000, 3, (1344, 1344, 1312))])
def test_all_parts_but_the_last_have_as_many_rows(length, count, wanted):
  assert choice.sizes(length, count) == wanted


@pytest.mark.parametrize('length', [1, 2, 7, 1000, 99_999, 1_000_001])
@pytest.mark.parametrize('count', [1, 2, 5, 16])
def test_parts_are_the_whole(length, count):
  found = choice.sizes(length, count)
  assert sum(found) == length and len(found) <= count and min(found) > 0


def test_tables_in_parts_are_found_by_their_variables():
  names = [f'net/words/embeddings_part_{i}' for i in (0, 1, 10)]
  slots = [f'adam/{name}_velocity' for name in names]
  assert choice.tables_in_parts(['', 'net/head/kernel', *names,
                                 *slots]) == {'net/words/embeddings': 3}


def test_tables_in_parts_have_the_order_of_their_variables():
  """A repeatable plan had its tables in another order in each process."""
  tables = [f'{layer}/kernel' for layer in 'hgfedcba']
  names = [f'{table}_part_{i}' for i in range(2) for table in tables]
  assert list(choice.tables_in_parts(names)) == tables
