"""From the arguments that a user typed to the problem that a placer solves.

All programs and the API read graphs here, so that the same arguments mean the
same problem everywhere. Belongs here: telling apart files, workloads, functions
and graphs with their own costs; the profile and the human expert of a graph;
the help texts of these arguments. Does not belong here: how each kind of graph
is read (`graph.sources`, `graph.costed`, `workloads`), flags (`bin`).
"""
