"""Measured steps of placements.

Belongs here: the measurer, the worker that runs the steps, local servers that
stand for devices, what makes a graph runnable, how many steps are run and
which count, results that are kept. Does not belong here: times of single ops
(`profiling`).
"""
