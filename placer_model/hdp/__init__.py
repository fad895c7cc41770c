"""The hierarchical planner (HDP) and ColocRL, learned baselines.

Belongs here: their policies, their policy gradient, and the hand-made groups
of ColocRL, as Mirhoseini et al. published them (ICML 2017, ICLR 2018). Does
not belong here: whatever GDP's own policy needs; these two share nothing but
the question, `placers.placer.Problem`.
"""
