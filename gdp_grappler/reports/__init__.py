"""Results made readable.

Belongs here: tables, timelines and pages made from evaluations and
placements. Does not belong here: prices (`evaluation`), deciding anything.
"""
