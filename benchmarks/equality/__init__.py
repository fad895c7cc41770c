"""Training programs whose numbers placement must not change.

Belongs here: whole training programs of many kinds, and the comparison of their
numbers with and without placement. Does not belong here: single kinds of ops
(`tests/helpers/real_graphs`).
"""
