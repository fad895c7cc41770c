"""The order in which the ready ops of a device run.

Belongs here: priorities, and the control edges that enforce them in a graph.
Does not belong here: which device an op runs on (`placers`).
"""
