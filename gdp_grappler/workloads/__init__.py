"""The training graphs of the papers, by name.

Belongs here: one module per family of models, the rules by which a human
expert places them, and how their graphs are made, captured and found. Does not
belong here: what places or prices them.
"""
