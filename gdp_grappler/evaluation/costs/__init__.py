"""Seconds and bytes of single ops.

Belongs here: the roofline and its families of ops, profiles and the costs
computed from them, costs that come with a graph. Does not belong here: making
profiles (`profiling`), whole steps (`simulation`, `measuring`).
"""
