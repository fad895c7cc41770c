"""The dataflow graph that is placed, and the devices that its ops may have.

Belongs here: the graph as arrays (`op_graph`), its reading and writing
(`graph_def_io`), facts about types of ops (`op_kinds`), units of groups
(`coarsening`), sources of graphs (`sources`), loops and calls (`control_flow`),
layers, time steps and other structure that repeats (`structure`), large tables
and their parts (`tables`), legal devices (`legality`), graphs with their own
costs (`costed`). Does not belong here: devices of a machine (`cluster`),
seconds (`evaluation`), choosing devices (`placers`).
"""
