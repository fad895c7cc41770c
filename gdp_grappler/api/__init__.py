"""What the programs can do, to be called from scripts and notebooks.

Belongs here: one function per thing a user wants (place, simulate, compare,
explain, diff, verify) and the objects that they return, which show themselves
in a terminal and in a notebook. Does not belong here: flags and exit codes
(`bin`), how any of it is done (everything below).
"""
