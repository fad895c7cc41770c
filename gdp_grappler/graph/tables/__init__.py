"""Graphs whose tables are split: one variable becomes several.

Belongs here: rewriting a GraphDef so that a variable, what is kept for it and
what is computed of it are in parts. Does not belong here: which variables those
are (`problems.tables`), and models that are made with parts (`sharding`).
"""
