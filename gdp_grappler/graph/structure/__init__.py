"""Position of each op in a structure that repeats: layer, time step, variable.

Belongs here: numbers in name scopes, the order in which variables are used, and
coordinates made from both. Does not belong here: how placers or policies use
coordinates.
"""
