"""How a graph gets from TensorFlow to a placer and back.

Belongs here: the loader, the Grappler pass, the `tf.config` option, the thread
that serves the pass, capturing, the scopes. Does not belong here: deciding
where an op goes (`placers`), reading a graph (`graph`).
"""
