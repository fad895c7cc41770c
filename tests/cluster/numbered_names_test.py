import pytest

from gdp_grappler.cluster import numbered_names


@pytest.mark.parametrize(
    'before, after, pair',
    [(['f/adam/Sub_1', 'f/a/MatMul'], ['f/a/MatMul', 'f/adam_1/Sub_1'
                                      ], '"adam" and "adam_1"'),
     (['net_2/dense_3/MatMul', 'net_2/adam/Sub'
      ], ['net/dense/MatMul', 'net/adam_1/Sub'], '"adam" and "adam_1"')])
def test_names_that_differ_in_numbers(before, after, pair):
  hint = numbered_names.hint(before, after)
  assert hint.startswith(' The names of their ops differ only in')
  assert pair in hint


@pytest.mark.parametrize('before, after', [
    (['a/MatMul'], ['a/MatMul']),
    (['a/MatMul'], ['b/MatMul']),
    (['a/MatMul'], ['a_1/MatMul', 'a_1/Add']),
    (['a/MatMul', 'a_1/MatMul'], ['a_2/MatMul']),
])
def test_other_names_get_no_hint(before, after):
  assert not numbered_names.hint(before, after)
