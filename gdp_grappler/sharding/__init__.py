"""Tables in parts: one weight of a layer is several variables.

Belongs here: tables and their parts, and the changes to Keras' layers and
optimizers that have such tables. Does not belong here: the decision to split a
table (`plugin.fitting.tables` in a program, `problems.tables` offline), and
graphs that were made without parts (`graph.tables`).
"""
