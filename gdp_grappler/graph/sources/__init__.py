"""From what a user names to a GraphDef with its fetches and feeds.

Belongs here: files, tracing of Keras models and SavedModels in a process of
its own, training steps, what of a graph runs. Does not belong here: arrays
(`graph_def_io`), costs that come with a graph (`costed`).
"""
