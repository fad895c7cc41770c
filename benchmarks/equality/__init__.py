"""Programs that must not notice that they are placed.

Belongs here: whole training programs of many kinds, run without and with
placement, and what became of their numbers. Does not belong here: single kinds
of ops (`tests/helpers/real_graphs`).
"""
