"""Calibrates a card: the host's time per op, and kernels by type and size.

Belongs here: the list of kernels, the method and the process that time them,
kernels in TensorFlow's traces, model names of hardware, the time budget of each
step. Does not belong here: the file of the result
(`cluster.calibration`), costs computed from the result (`costs`), ops of one
graph (`profiling`).
"""
