"""Splits tables in a graph: one variable becomes several.

Belongs here: finding tables, and rewriting a GraphDef so that a variable, its
slots and tensors computed from it are in parts. Does not belong here: the
choice of tables and of the numbers of parts (`problems.tables`), and models
that are made with parts (`sharding`).
"""
