"""Command lines of the run time.

Belongs here: flags, printing, exit codes. Does not belong here: anything that
a library user would miss; flags live nowhere else.
"""
