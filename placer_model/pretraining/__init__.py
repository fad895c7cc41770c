"""What is learned once, on graphs that nobody wrote, and serves all others.

Belongs here: logs of searches, the training of the network that chooses moves,
how well it does on graphs it has not seen. Does not belong here: learning on
the graph that is to be placed (`training`), the network's use (`placers`).
"""
