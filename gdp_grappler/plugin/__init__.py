"""Takes a graph from TensorFlow to a placer, and the placement back.

Belongs here: the loader, the Grappler pass, the `tf.config` option, the thread
on which the pass runs placers, the capture of graphs, the user's scopes such as
`pin`, and the checks of an installation. Does not belong here: choosing devices
(`placers`), and reading graphs (`graph`).
"""
