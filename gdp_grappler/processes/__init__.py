"""Child processes: how they are started, asked and ended.

Belongs here: the command and the environment they get, the messages that go to
and fro, what to do when one is lost. Does not belong here: what a child is
asked to do. Nobody else starts an interpreter.
"""
