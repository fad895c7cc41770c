"""Measured steps of placements.

Belongs here: the measurer, the worker that runs the steps, local servers that
serve as devices, the conversion of graphs to runnable ones, the number of
steps, the cache of results. Does not belong here: times of single ops
(`profiling`).
"""
