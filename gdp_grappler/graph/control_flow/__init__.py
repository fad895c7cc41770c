"""Executions of ops in a step, and costs of function calls.

Belongs here: loop frames, values known before the step, bodies of functions and
their costs, lists of tensors. Does not belong here: legal devices (`legality`).
"""
