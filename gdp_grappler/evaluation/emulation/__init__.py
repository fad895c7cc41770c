"""Steps of placements on emulated GPUs.

Belongs here: the TensorFlow plugin that emulates GPUs, the graph of ops with
prescribed times, the process that runs this graph, the evaluator that calls the
process. Does not belong here: seconds of ops (`costs`).
"""
