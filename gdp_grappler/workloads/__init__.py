"""The training graphs of the papers, by name.

Belongs here: one module per family of models, the placements of a human expert,
and how graphs are built, captured and found. Does not belong here: what places
or prices graphs.
"""
