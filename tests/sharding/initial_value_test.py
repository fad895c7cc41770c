import numpy as np
import pytest

from gdp_grappler.sharding import initial_value

_WHOLE = np.arange(15, dtype=np.float32).reshape(5, 3)


@pytest.mark.parametrize('axis, sizes', [(0, (2, 2, 1)), (1, (2, 1))])
def test_parts_have_what_the_whole_would_have(axis, sizes):
  drawn = []

  def draw(shape, dtype=None):
    drawn.append((shape, dtype))
    return _WHOLE

  initial = initial_value.InitialValue(draw, [5, 3], axis, sizes)
  ends = np.cumsum(sizes)[:-1]
  for index, wanted in enumerate(np.split(_WHOLE, ends, axis)):
    np.testing.assert_array_equal(initial.part(index, wanted.shape, 'float32'),
                                  wanted)
  # Once for all parts, and not kept after the last one.
  assert drawn == [((5, 3), 'float32')]
  assert initial._drawn is None
