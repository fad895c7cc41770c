"""Measured seconds of single ops.

Belongs here: the profiler, the workers that time for it, memory buses that
are shared. Does not belong here: reading a profile (`costs`), whole steps
(`measuring`), links (`link_timing`).
"""
