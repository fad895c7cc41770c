"""The choice among placements by their step times with control edges.

Belongs here: ranking and choosing placements with their control edges. Does not
belong here: how control edges are found (`evaluation.ordering`).
"""
