"""Placements that map the coordinates of a graph to devices.

Belongs here: maps of layers, time steps, variables and branches to devices, and
the placers that price them. Does not belong here: how coordinates are read
from a graph (`graph.structure`).
"""
