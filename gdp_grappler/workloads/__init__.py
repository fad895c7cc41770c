"""The training graphs of the papers, by name.

Belongs here: one module per family of models, the placements of a human expert,
and building, capturing and finding graphs. Does not belong here: placing and
pricing of graphs.
"""
