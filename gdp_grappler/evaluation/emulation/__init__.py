"""Steps of placements on emulated GPUs.

Belongs here: the plugin of TensorFlow that emulates GPUs, the graph of ops of
prescribed time, the process that runs this graph, the evaluator that calls the
process. Does not belong here: seconds of ops (`costs`).
"""
