"""Placers that simulate a greedy scheduler: m-TOPO, m-ETF, m-SCT and HEFT.

Belongs here: the four placers, the tasks and bundles that they schedule, the
native schedulers over arrays. Does not belong here: the price of proposals
(`evaluation`).
"""
