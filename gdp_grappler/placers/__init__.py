"""Placers, which choose a device for each op of a graph.

Belongs here: the problem and the interface of placers (`placer`), the table of
all placers and their registry, the default placer, and a package for each
family of placers. Does not belong here: training (`placer_model`), prices
(`evaluation`).
"""
