"""Everything that turns a graph into devices.

Belongs here: one module per placer, all behind the `Placer` interface, and
their registry. Does not belong here: learning (`placer_model`), prices
(`evaluation`).
"""
