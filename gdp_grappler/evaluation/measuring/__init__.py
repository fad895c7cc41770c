"""What `measurer` needs to time the steps of a placement.

Belongs here: the worker that runs the steps, how many are run and which
count, results that are kept. Does not belong here: times of single ops
(`profiling`).
"""
