"""Placers that cut a graph into parts: METIS, Scotch, MinCut, Mt-KaHyPar.

Belongs here: the four placers, the mapping of parts to devices, workers for
libraries that may crash a process. Does not belong here: the graph of groups
(`placers.group_graph`), the price of proposals (`evaluation`).
"""
