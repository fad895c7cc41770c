"""Rows and products of a table in parts."""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf


def rows(parts: Sequence[Any], each: int, ids: Any) -> Any:
  """Rows of a table by their numbers, each read from its part.

  A part only sees the numbers of its own rows, so that its gradient has these
  rows alone (IndexedSlices), in the order in which the whole table's has them.

  Args:
    parts: K variables or tensors [R_k, ...], the parts of the table.
    each: Rows of every part but the last one.
    ids: Integers [...], numbers of rows of the table.

  Returns:
    [..., ...], the rows.
  """
  flat = tf.reshape(ids, [-1])
  # What is out of range is so in the last part, too.
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
