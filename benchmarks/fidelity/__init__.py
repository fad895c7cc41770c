"""Compares simulated with measured step times of the same placements.

Belongs here: the graphs, placements and page of this study
(`make fidelity`). Does not belong here: anything that users need.
"""
