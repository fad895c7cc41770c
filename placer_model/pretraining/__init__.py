"""Training of networks on random graphs, to be used for all other graphs.

Belongs here: logs of searches, the training of the network that chooses moves,
and tests on graphs that were held out. Does not belong here: training on the
graph that is to be placed (`training`), the use of the network (`placers`).
"""
