"""From the user's name of a graph to a GraphDef with its feeds and fetches.

Belongs here: reading files, tracing of Keras models in their own process,
training steps, pruning of ops that do not run. Does not belong here: graphs as
arrays (`graph_def_io`), graphs with their own costs (`costed`).
"""
