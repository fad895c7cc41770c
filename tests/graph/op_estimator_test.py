"""Bytes that ops move in variables and tables."""

import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_properties
from helpers import graph_defs

_ROWS, _UNITS = 1000, 50


def _bytes(make, unknown_dim=32):
  """Of the op that is called 'found'."""
  definition = graph_defs.built(make)
  found = op_properties.estimate(node_table.NodeTable('test', definition),
                                 unknown_dim)
  return found.io_bytes[[node.name for node in definition.node].index('found')]


def _update_bytes(make):
  """Of the op that is called 'found', in sizes of its variables."""

  def make_all():
    handles = [
        tf.compat.v1.get_variable(f'v{i}', [1000], use_resource=True).handle
        for i in range(3)
    ]
    make(tf.raw_ops, handles, tf.compat.v1.placeholder(tf.float32, [1000]))

  return _bytes(make_all) / 4000


def test_updates_move_what_lies_behind_their_handles():
  """The gradient alone was counted: a seventh of what Adam moves."""
  assert _update_bytes(lambda raw, v, x: raw.AssignAddVariableOp(
      resource=v[0], value=x, name='found')) == 3
  assert _update_bytes(lambda raw, v, x: raw.ResourceApplyGradientDescent(
      var=v[0], alpha=.1, delta=x, name='found')) == pytest.approx(3, rel=.01)
  assert _update_bytes(lambda raw, v, x: raw.ResourceApplyAdam(
      var=v[0], m=v[1], v=v[2], beta1_power=.9, beta2_power=.9, lr=.1, beta1=.9,
      beta2=.9, epsilon=1e-7, grad=x, name='found')) == pytest.approx(
          7, rel=.05)
  assert _update_bytes(
      lambda raw, v, x: raw.ResourceScatterAdd(resource=v[0], indices=tf.range(
          10), updates=x[:10], name='found')) == pytest.approx(
              3 * 20 / 1000, rel=.01)
  assert _update_bytes(lambda raw, v, x: raw.AssignVariableOp(
      resource=v[0], value=x, name='found')) == 1


def _reference_bytes(op_type, **arguments):
  """Of an update of v1 variables, in sizes of a variable.

  Args:
    op_type: Type of the update.
    **arguments: Functions that make arguments. Others are .1.
  """

  def make():
    values = {}
    for argument in op_def_registry.get(op_type).input_arg:
      if argument.is_ref:
        values[argument.name] = tf.compat.v1.get_variable(
            argument.name, [_ROWS, _UNITS], use_resource=False)._ref()
      else:
        values[argument.name] = arguments.get(argument.name, lambda: .1)()
    getattr(tf.raw_ops, op_type)(**values, name='found')

  return _bytes(make) / (4 * _ROWS * _UNITS)


def _values(rows):
  return lambda: tf.compat.v1.placeholder(tf.float32, [rows, _UNITS])


@pytest.mark.parametrize('name, value, passes', [
    ('ApplyGradientDescent', 'delta', 3),
    ('ApplyMomentum', 'grad', 5),
    ('ApplyRMSProp', 'grad', 7),
    ('ApplyAdam', 'grad', 7),
    ('ApplyCenteredRMSProp', 'grad', 9),
    ('Assign', 'value', 2),
    ('AssignAdd', 'value', 3),
])
def test_updates_write_all_their_v1_variables(name, value, passes):
  """Of three variables that Adam writes, only one was counted as written."""
  moved = _reference_bytes(name, **{value: _values(_ROWS)})
  assert moved == pytest.approx(passes, rel=.001)


@pytest.mark.parametrize('name, passes', [
    ('SparseApplyProximalGradientDescent', 3),
    ('SparseApplyAdagrad', 5),
    ('SparseApplyAdagradDA', 7),
    ('SparseApplyFtrlV2', 7),
    ('SparseApplyCenteredRMSProp', 9),
])
def test_updates_of_a_few_rows_touch_no_others(name, passes):
  """An update of ten rows of a v1 variable was priced as one of all rows."""
  moved = _reference_bytes(name, grad=_values(10), indices=lambda: tf.range(10),
                           global_step=lambda: tf.constant(1, tf.int64))
  assert moved == pytest.approx(passes * 10 / _ROWS, rel=.03)


@pytest.mark.parametrize('name', ['ScatterNdAdd', 'ScatterNdUpdate'])
def test_scatters_into_a_few_rows_touch_no_others(name):
  """A scatter into ten rows of a v1 variable was priced as one into all."""
  moved = _reference_bytes(name, indices=lambda: tf.range(10)[:, None],
                           updates=_values(10))
  assert moved == pytest.approx(3 * 10 / _ROWS, rel=.01)


def test_assignments_to_a_slice_read_and_write_the_slice():
  """All of a v1 variable counted, and no write of a variable with a handle."""
  moved = _reference_bytes('StridedSliceAssign', begin=lambda: [10, 0],
                           end=lambda: [20, 50], strides=lambda: [1, 1],
                           value=_values(10))
  assert moved == pytest.approx(2 * 10 / _ROWS, rel=.02)
  assert _update_bytes(lambda raw, v, x: raw.ResourceStridedSliceAssign(
      ref=v[0], begin=[10], end=[510], strides=[1], value=x[:500], name='found')
                      ) == pytest.approx(2 * 500 / 1000, rel=.02)


def test_updates_of_a_tensor_in_place_touch_no_other_rows():
  """An update of one row of a tensor was priced as one of all rows."""
  moved = _bytes(lambda: tf.raw_ops.InplaceAdd(x=_values(_ROWS)(), i=[3], v=
                                               _values(1)(), name='found'))
  assert moved == 4 * (3 * _UNITS + 1)


@pytest.mark.parametrize('name', ['Sum', 'Mean', 'SqrtN'])
@pytest.mark.parametrize('ending, count', [
    ('', {}),
    ('WithNumSegments', {'num_segments': 4}),
])
def test_sums_of_a_few_rows_read_no_others(name, ending, count):
  """A sum of ten rows of a table was priced as a sum of all rows."""

  def make():
    sum_segments = getattr(tf.raw_ops, f'SparseSegment{name}{ending}')
    sum_segments(data=_values(_ROWS)(), indices=tf.range(10),
                 segment_ids=tf.zeros([10], tf.int32), name='found', **count)

  rows, integers = 10 + 4, 10 + 10 + len(count)
  assert _bytes(make, unknown_dim=4) == 4 * (rows * _UNITS + integers)


def test_lookups_in_a_variable_read_what_they_output():
  """Lookups in variables moved half as much as others."""
  assert _update_bytes(
      lambda raw, v, x: raw.ResourceGather(resource=v[0], indices=tf.range(
          10), dtype=x.dtype, name='found')) == 3 * 10 / 1000
  assert _update_bytes(
      lambda raw, v, x: raw.ResourceGatherNd(resource=v[0], indices=tf.range(
          10)[:, None], dtype=x.dtype, name='found')) == 3 * 10 / 1000


@pytest.mark.parametrize('name, arguments', [
    ('MatrixDiagPart', {}),
    ('MatrixDiagPartV2', dict(k=0, padding_value=0.)),
    ('MatrixDiagPartV3', dict(k=0, padding_value=0.)),
])
def test_diagonals_are_read_without_the_rest_of_their_matrices(name, arguments):
  """All of each matrix counted, though the op reads one number per row."""

  def make():
    x = tf.compat.v1.placeholder(tf.float32, [3, _UNITS, _UNITS])
    getattr(tf.raw_ops, name)(input=x, name='found', **arguments)

  assert _bytes(make) == 4 * (2 * 3 * _UNITS + len(arguments))


def test_a_diagonal_of_a_square_is_as_long_as_its_side():

  def make():
    x = tf.compat.v1.placeholder(tf.float32, [_UNITS, _UNITS])
    tf.raw_ops.DiagPart(input=x, name='found')

  assert _bytes(make) == 4 * 2 * _UNITS


def test_a_band_is_read_as_wide_as_it_is():

  def make():
    x = tf.compat.v1.placeholder(tf.float32, [_UNITS, _UNITS])
    tf.raw_ops.MatrixDiagPartV3(input=x, k=[-1, 1], padding_value=0.,
                                name='found')

  assert _bytes(make) == 4 * (2 * 3 * _UNITS + 3)
