"""What is placed: the dataflow graph, and which devices it allows.

Belongs here: reading and writing GraphDefs, the sources they come from,
shapes and sizes, the groups of ops that must stay together. `graph_def_io`
and its helpers are the only modules that handle GraphDef protobufs.
Does not belong here: devices of a machine (`cluster`), seconds
(`evaluation`), choosing devices (`placers`).
"""
