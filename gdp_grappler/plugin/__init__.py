"""Takes a graph from TensorFlow to a placer, and the placement back.

Belongs here: the loader, the Grappler pass, the `tf.config` option, the thread
on which the pass runs placers, the capture of graphs, and the user's scopes
such as `pin`. Does not belong here: choosing devices (`placers`), and reading
graphs (`graph`).
"""
