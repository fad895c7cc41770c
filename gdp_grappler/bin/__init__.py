"""Command lines of the run time.

Belongs here: flags, printing, exit codes. Does not belong here: code that users
of the library need. Other packages have no flags.
"""
