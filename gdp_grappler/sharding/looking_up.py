"""Looks up rows of a table in parts."""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf


def rows(parts: Sequence[Any], each: int, ids: Any) -> Any:
  """Looks up rows of a table, each in its part.

  Each part gets only the numbers of its own rows. So the gradient of a part
  (IndexedSlices) has only these rows, in the order of the whole table's
  gradient.

  Args:
    parts: K variables or tensors [R_k, ...], the parts of the table.
    each: Rows of every part but the last one.
    ids: Integers [...], numbers of rows of the table.

  Returns:
    [..., ...], the rows.
  """
  flat = tf.reshape(ids, [-1])
  # A number out of range goes to the first or last part, which has no such row.
  owners = tf.clip_by_value(flat // each, 0, len(parts) - 1)
  owner_ids = tf.cast(owners, tf.int32)
  places = tf.dynamic_partition(tf.range(tf.size(flat)), owner_ids, len(parts))
  wanted = tf.dynamic_partition(flat - owners * each, owner_ids, len(parts))
  found = tf.dynamic_stitch(
      places, [tf.gather(part, own) for part, own in zip(parts, wanted)])
  width = parts[0].shape[1:]
  result = tf.reshape(found, tf.concat([tf.shape(ids), width], 0))
  result.set_shape(ids.shape.concatenate(width))
  return result
