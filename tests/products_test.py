"""Products of matrices, without threads of a library."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from gdp_grappler import products
from helpers import fresh

_SIZES = st.integers(0, 40)


def _naive(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  result = np.zeros((len(a), b.shape[1]), np.result_type(a, b))
  for row, column in np.ndindex(*result.shape):
    for k in range(len(b)):
      result[row, column] += a[row, k] * b[k, column]
  return result


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(seed=st.integers(0, 1 << 30), rows=_SIZES, inner=_SIZES,
                  columns=_SIZES, dtype=st.sampled_from(['f4', 'f8']))
def test_a_product_is_the_sum_in_order(seed, rows, inner, columns, dtype):
  rng = np.random.default_rng(seed)
  a = rng.normal(size=(rows, inner)).astype(dtype)
  b = rng.normal(size=(inner, columns)).astype(dtype)
  found = products.product(a, b)
  assert found.dtype == dtype
  # Bit by bit: the sums do not depend on the processor.
  assert found.tolist() == _naive(a, b).tolist()


def test_a_matrix_times_a_vector():
  found = products.product(
      np.arange(6.).reshape(2, 3), np.array([1., 10., 100.]))
  assert found.tolist() == [210., 543.]


def test_other_types_and_views_become_float64():
  wide = np.arange(12, dtype=np.float32).reshape(3, 4)
  crossing = np.array([[True], [False], [True]])
  found = products.product(wide[:, ::2].T, crossing)
  assert found.dtype == np.float64
  assert found.tolist() == [[8.], [12.]]


@pytest.mark.parametrize('a, b', [((2, 3), (2,)), ((2, 3), (2, 3)),
                                  ((3,), (3,)), ((2, 3), (3, 1, 1))])
def test_shapes_that_do_not_match_are_refused(a, b):
  with pytest.raises(ValueError, match=r'No product of \[.*\] and \[.*\]'):
    products.product(np.zeros(a), np.zeros(b))


_COUNTED = '''
import dataclasses, json, os
def threads():
  return set(os.listdir('/proc/self/task'))
before = threads()
import numpy as np
blas = sorted(threads() - before)
def slices():
  return [int(open(f'/proc/self/task/{thread}/schedstat').read().split()[2])
          for thread in blas]
from gdp_grappler import products
from gdp_grappler.placers import registry
from gdp_grappler.problems import reading
a, b = np.ones((500, 80), np.float32), np.ones((80, 256), np.float32)
step = reading.read_task('rnnlm-2@tiny@2xP100', lambda *_: None)
problem = dataclasses.replace(step.problem(), time_budget_s=1)
woken = {}
def run(name, function):
  before = slices()
  function()
  woken[name] = slices() != before
run('product', lambda: products.product(a, b))
run('gdp', lambda: registry.create('gdp').place(problem))
run('gdp_policy', lambda: registry.create('gdp_policy').place(problem))
run('numpy', lambda: a @ b)
print(json.dumps([len(blas), woken]))
'''


def test_no_thread_of_numpy_wakes():
  # The threads of OpenBLAS took a third of the processor time of a search.
  count, woken = fresh.run_code(_COUNTED, OPENBLAS_NUM_THREADS='4').results
  if not count:
    pytest.skip('NumPy has a BLAS library without threads of its own.')
  assert woken == {
      'product': False, 'gdp': False, 'gdp_policy': False, 'numpy': True
  }
