"""How often ops run, and what is inside calls.

Belongs here: loop frames, values known before the step, function bodies and
what they cost, lists of tensors. Does not belong here: where ops may be
(`legality`).
"""
