"""Tables in parts: one weight of a layer as several variables.

Belongs here: what knows of a table and its parts, and of Keras' layers and
optimizers that have such tables. Does not belong here: when a table is split
(`plugin.fitting.tables` in a program, `problems.tables` offline), and graphs
that were made without parts (`graph.tables`).
"""
