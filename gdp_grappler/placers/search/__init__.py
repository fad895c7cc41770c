"""Simulated annealing of a placement, and the stages of a whole search.

Belongs here: the annealing, its budget, its stages, the smaller problem that
is searched first. Does not belong here: starts of a search (the other placers),
the price of a placement (`evaluation`).
"""
