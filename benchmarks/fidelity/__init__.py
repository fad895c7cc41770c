"""Compares simulated with measured step times of the same placements.

Belongs here: the graphs, the placements and the page of this study
(`make fidelity`). Does not belong here: anything a user of the package needs.
"""
