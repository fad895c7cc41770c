"""Teaches the placer network to say placements, on graphs that nobody wrote.

Belongs here: lessons (a drawn problem and good placements of it), how the
network learns from them, runs of that. Does not belong here: learning on the
graph that is to be placed (`training`), the network that chooses moves.
"""
