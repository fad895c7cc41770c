"""Starts and ends child processes, and exchanges messages with them.

Belongs here: the command and the environment of a child, the messages in both
directions, and the handling of a lost child. Does not belong here: the work
that a child does. No other package starts a Python interpreter.
"""
