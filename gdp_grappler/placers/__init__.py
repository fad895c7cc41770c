"""Everything that turns a graph into devices.

Belongs here: the question (`placer`), the table of all placers and their
registry, the default placer, and a room for each family of placers. Does not
belong here: learning (`placer_model`), prices (`evaluation`).
"""
