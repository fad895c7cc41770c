"""Placements that a user gives: a plan of ops or a map of layers.

Belongs here: reading a plan for a graph, and the rules by which ops that the
plan does not name get the devices of their neighbours and variables. Does not
belong here: the plan's file format (`cluster`).
"""
