"""Supervised training of the policy network on placements of random graphs.

An *example* is a drawn problem with good placements of it, its *answers*.

Belongs here: examples, supervised training of the network on them, runs of this
training. Does not belong here: training on the graph that is to be placed
(`training`), the network that chooses moves.
"""
