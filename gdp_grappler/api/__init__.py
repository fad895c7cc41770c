"""Functions for scripts and notebooks, for the tasks of the program gdp.

Belongs here: one function per task of a user (place, simulate, compare,
explain, diff, report, verify), and the objects that these functions return. The
objects can print themselves in a terminal and in a notebook. Does not belong
here: flags and exit codes (`bin`), and the algorithms (the packages below).
"""
