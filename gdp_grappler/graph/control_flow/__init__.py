"""How often ops run in a step, and what function calls cost.

Belongs here: loop frames, values known before the step, bodies of functions and
their costs, lists of tensors. Does not belong here: legal devices (`legality`).
"""
