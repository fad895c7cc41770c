"""Measures a card: what the host pays per op, and kernels by family and size.

Belongs here: which kernels, how they are timed, the process that times them,
how much time each step may take. Does not belong here: the file that keeps the
result (`cluster.calibration`), prices that are made of it (`costs`), ops of one
graph (`profiling`).
"""
