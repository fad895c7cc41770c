"""The one door: from what a user typed to the problem that a placer solves.

Belongs here: telling apart files, workloads, functions and graphs with costs
of their own; profiles, experts and what else belongs to a graph; the texts
that say so in every program's help. Does not belong here: how each kind is
read (`graph.sources`, `graph.costed`, `workloads`), flags (`bin`).
"""
