"""A policy that improves drafts, move by move.

Belongs here: which drafts a placement begins with, which moves of sets of ops a
learned network chooses, how many of them are priced. Does not belong here: how
moves are drawn (`placers.moves`) and what they look like (`features.moves`).
"""
