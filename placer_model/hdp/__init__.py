"""The hierarchical planner (HDP) and ColocRL, as learned baselines.

Belongs here: their policies, their policy gradient, and the hand-made groups of
ColocRL, as Mirhoseini et al. published them (ICML 2017, ICLR 2018). Does not
belong here: parts of GDP's own policy. The two have only the interface
`placers.placer.Problem` in common.
"""
