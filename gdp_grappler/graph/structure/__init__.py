"""Where in a repeated structure each op is: layer, time step, variable, ...

Belongs here: numbers in name scopes, the order in which variables are used,
coordinates made of both. Does not belong here: what placers or policies make of
coordinates.
"""
