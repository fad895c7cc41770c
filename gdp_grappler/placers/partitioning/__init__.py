"""Placers that cut a graph into parts: METIS, Scotch, MinCut, Mt-KaHyPar.

Belongs here: the four placers, the graph of groups that they cut, workers
for libraries that may take a process down. Does not belong here: the price of
what they propose (`evaluation`).
"""
