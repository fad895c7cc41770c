"""What is placed: the dataflow graph, and which devices it allows.

Belongs here: the arrays (`op_graph`), their reading and writing
(`graph_def_io`), what ops of a name do (`op_kinds`), units of ops that belong
together (`coarsening`); where graphs come from (`sources`), their loops and
calls (`control_flow`), what they repeat (`structure`), the rules of TensorFlow
(`legality`), graphs that bring their own costs (`costed`). Does not belong
here: devices of a machine (`cluster`), seconds (`evaluation`), choosing devices
(`placers`).
"""
