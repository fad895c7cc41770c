"""Steps of placements on GPUs that are not there.

Belongs here: the plugin of TensorFlow that emulates GPUs, the graph of ops of
prescribed time that runs on them, the process it runs in, the evaluator that
asks it. Does not belong here: how long ops take (`costs`).
"""
