"""What Keras' `fit` needs beyond a pass that sees one graph at a time.

Belongs here: variables that move, the train function whose first calls are
planned and timed, XLA, messages to the user. Does not belong here: deciding
where an op goes (`placers`), answering the pass (`plugin.host`).
"""
