"""Measured seconds of single ops.

Belongs here: the profiler, the worker processes in which it times ops, the
slowdown by shared memory buses. Does not belong here: reading a profile
(`costs`), whole steps (`measuring`), links (`link_timing`).
"""
