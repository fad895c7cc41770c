"""Shows results in a readable form.

Belongs here: tables, timelines and pages made from evaluations and
placements. Does not belong here: prices (`evaluation`), and any decisions.
"""
