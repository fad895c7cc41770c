"""Which placement is the fastest once control edges enforce an order.

Belongs here: ranking and choosing placements with their control edges. Does not
belong here: how control edges are found (`evaluation.ordering`).
"""
