"""Support of Keras' `fit`: moves of variables, timed steps, XLA.

The pass sees one graph at a time. `fit` needs more.

Belongs here: variables that move or are made on the host, tables in parts, the
train function whose first calls are planned and timed, XLA, messages to the
user. Does not belong here: deciding where an op goes (`placers`), answering the
pass (`plugin.host`).
"""
